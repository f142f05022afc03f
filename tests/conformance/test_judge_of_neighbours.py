"""Each case about what others see of a request holds on a right server, and catches its mutants."""

from harness.judged_case import judged
from harness.mutant import Base
from mutants import admin, contract, isolation

BASES: dict[str, Base] = {
    "admin.credential_of_engine": "keyed",
    "admin.credential_of_requests": "keyed",
    "contract.token_counts": "simulated",
}
(
    servers,
    test_the_case_holds_on_a_right_server,
    test_the_case_catches_its_mutant,
    test_each_case_has_a_mutant,
) = judged(
    ("isolation", "admin", "contract"), isolation.MUTANTS, admin.MUTANTS, contract.MUTANTS, bases=BASES, hurry=0.4
)
