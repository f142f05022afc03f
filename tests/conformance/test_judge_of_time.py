"""Each case about retries, deadlines, clients that leave, and load holds on a right server, and catches its mutants."""

from harness.judged_case import judged
from mutants import cancellation, deadlines, idempotency, overload, slow

(
    servers,
    test_the_case_holds_on_a_right_server,
    test_the_case_catches_its_mutant,
    test_each_case_has_a_mutant,
) = judged(
    ("idempotency", "deadlines", "cancellation", "slow", "overload"),
    idempotency.MUTANTS,
    deadlines.MUTANTS,
    cancellation.MUTANTS,
    slow.MUTANTS,
    overload.MUTANTS,
    hurry=0.4,
)
