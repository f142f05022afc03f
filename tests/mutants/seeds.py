"""What breaks seeds."""

from typing import Any

from harness.judged_case import Mutants
from harness.mutant import EditsRequest, EditsValue, Heard, Ignores, Mutant, Said, on_base
from mutants.edits import Value, each_text, without


def _seedless() -> Mutant:
    """In front of the engine that samples: the scripted one plays the same without a seed."""
    return on_base("simulated", Ignores(("seed",)))


class _SeedsWholeOnly(Mutant):
    says = "does not take a seed in streams"
    base = "simulated"

    def hear(self, heard: Heard) -> Heard | Said:
        return heard.with_json(without(heard.json, "seed")) if heard.is_stream else heard


def _one_seed(body: Value) -> Value:
    return body | {"seed": 1} if "seed" in body else body


class _Drifts(Mutant):
    says = "answers a greedy request in another way each time"

    def __init__(self) -> None:
        self._num = 0

    def value(self, heard: Heard, status: int, value: Any) -> Any:
        self._num += 1
        return each_text(lambda text: text + "!" * self._num)(value)


MUTANTS: Mutants = {
    "seeds.effect": (_seedless(),),
    "seeds.same": (_seedless(),),
    "seeds.streamed": (_SeedsWholeOnly(),),
    "seeds.choices": (_seedless(),),
    "seeds.completions": (_seedless(),),
    "seeds.greedy": (_Drifts(),),
    "seeds.other": (
        on_base("simulated", EditsRequest("has one seed for all", _one_seed)),
        EditsValue("keeps answers by prompt alone", each_text(lambda _: "red")),
    ),
}
