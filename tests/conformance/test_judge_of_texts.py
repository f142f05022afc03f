"""Each case about the text of an answer, its scores and its counts holds on a right server, and catches its mutants."""

from harness.judged_case import judged
from harness.mutant import Base
from mutants import choices, logprobs, seeds, stop, unicode, usage

BASES: dict[str, Base] = {
    "logprobs.raw": "simulated",
    "logprobs.top_absent": "simulated",
    "seeds.effect": "simulated",
    "seeds.same": "simulated",
    "seeds.streamed": "simulated",
    "seeds.choices": "simulated",
    "seeds.completions": "simulated",
    "seeds.other": "simulated",
}
(
    servers,
    test_the_case_holds_on_a_right_server,
    test_the_case_catches_its_mutant,
    test_each_case_has_a_mutant,
) = judged(
    ("stop", "unicode", "logprobs", "usage", "choices", "seeds"),
    stop.MUTANTS,
    unicode.MUTANTS,
    logprobs.MUTANTS,
    usage.MUTANTS,
    choices.MUTANTS,
    seeds.MUTANTS,
    bases=BASES,
)
