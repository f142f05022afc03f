"""Seeds: what is sampled again, and what is not."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity, Turn, expect, expect_over
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.openers import completions_ask, generated, pieces, streamed
from tidegate.conformance.checks.choices import differ_by_seed
from tidegate.conformance.checks.same_answer import has_same_answer, has_some_pair
from tidegate.conformance.probing.capability import Capability

_SEEDED = (Capability.CHAT, Capability.SEED)
_NAMES = ("first", "second", "third", "fourth")
_SAME = (*generated(*_NAMES[:3]), expect(has_same_answer, *_NAMES[:3]))


def _drawn(seed: int | None = 7, **fields: Any) -> dict[str, Any]:
    """Returns a request that samples: at temperature 2, where no two draws of 32 tokens are alike by chance."""
    seeded = {} if seed is None else {"seed": seed}
    return chat_body(**{"temperature": 2, "max_tokens": 32, **seeded, **fields})


def _one_after_the_other(body: dict[str, Any]) -> tuple[Ask, ...]:
    return tuple(Ask(name=name, body=body, wave=wave, is_refusable=True) for wave, name in enumerate(_NAMES[:3]))


CASES: tuple[Case, ...] = (
    Case(
        id="seeds.effect",
        title="A seed has an effect: of four answers to the same seed at least two are the same",
        why="Experiments that record their seed cannot be repeated.",
        clauses=("openai:seed.effect",),
        severity=Severity.WRONG_DATA,
        needs=_SEEDED,
        asks=(Ask(body=_drawn(), copies=4, is_refusable=True),),
        expects=(*generated(), expect_over(has_some_pair, "it")),
        turn=Turn.ALONE,
    ),
    Case(
        id="seeds.same",
        title="Asked one after the other, the same seed gives the same answer every time",
        why="Experiments that record their seed cannot be repeated.",
        clauses=("tidegate:seed.repeats",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=_SEEDED,
        asks=_one_after_the_other(_drawn()),
        expects=_SAME,
        turn=Turn.ALONE,
    ),
    Case(
        id="seeds.streamed",
        title="The same seed gives the same answer whole and streamed",
        why="What was found out with whole answers does not hold for streams.",
        clauses=("tidegate:seed.repeats",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=(*_SEEDED, Capability.STREAMS),
        asks=(Ask(name="whole", body=_drawn()), Ask(body=streamed(_drawn()), wave=1)),
        expects=(*generated("whole", "it"), expect(has_same_answer, "whole", "it")),
        turn=Turn.ALONE,
    ),
    Case(
        id="seeds.choices",
        title="The same seed gives the same choices, each in its place",
        why="Votes over several answers cannot be repeated.",
        clauses=("tidegate:seed.repeats", "openai:choices.n"),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=(*_SEEDED, Capability.CHOICES),
        asks=_one_after_the_other(_drawn(n=2)),
        expects=_SAME,
        turn=Turn.ALONE,
    ),
    Case(
        id="seeds.completions",
        title="The same seed gives the same completion every time",
        why="Experiments that record their seed cannot be repeated.",
        clauses=("tidegate:seed.repeats",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=(Capability.COMPLETIONS, Capability.SEED),
        asks=tuple(
            completions_ask(completion_body("One, two,", temperature=2, max_tokens=32, seed=7), name=name, wave=wave)
            for wave, name in enumerate(_NAMES[:3])
        ),
        expects=_SAME,
        turn=Turn.ALONE,
    ),
    Case(
        id="seeds.greedy",
        title="At temperature 0 the same request gives the same answer every time",
        why="Tests against a model fail now and then, and nobody knows why.",
        clauses=("tidegate:seed.repeats",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=(Capability.CHAT,),
        asks=_one_after_the_other(chat_body()),
        expects=_SAME,
        turn=Turn.ALONE,
    ),
    Case(
        id="seeds.other",
        title="Other seeds give other answers",
        why="Many samples, each with a seed of its own, are one sample.",
        clauses=("openai:seed.effect",),
        severity=Severity.WRONG_DATA,
        needs=(*_SEEDED, Capability.LOGPROBS),
        asks=tuple(
            Ask(
                name=name,
                body=_drawn(seed, logprobs=True, top_logprobs=1),
                script=pieces(word, logprobs=[-9.0]),
                is_refusable=True,
            )
            for seed, (name, word) in enumerate(zip(_NAMES, ("red", "tan", "blue", "grey"), strict=True), start=1)
        ),
        expects=(*generated(*_NAMES), expect(differ_by_seed, *_NAMES)),
        tries=3,
    ),
)
