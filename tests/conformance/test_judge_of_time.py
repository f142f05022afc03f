"""Each case of these areas holds on a right server, and catches its mutants."""

from collections.abc import Iterator

import pytest

from harness.hurried_case import MUTANT_PATIENCE_S, hurried
from harness.judged_case import (
    RightServers,
    assert_caught,
    assert_each_has_a_mutant,
    assert_holds,
    mutant_rows,
    right_rows,
)
from harness.mutant import Base, Mutant
from mutants import cancellation, deadlines, idempotency, overload, slow
from tidegate.conformance.case import Case

AREAS = ("idempotency", "deadlines", "cancellation", "slow", "overload")
MUTANTS = {
    **idempotency.MUTANTS,
    **deadlines.MUTANTS,
    **cancellation.MUTANTS,
    **slow.MUTANTS,
    **overload.MUTANTS,
}
BASES: dict[str, Base] = {}
"""Cases whose right server is not the scripted one."""
HURRY = 0.4

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def servers() -> Iterator[RightServers]:
    with RightServers() as running:
        yield running


@pytest.mark.parametrize(("case", "base"), right_rows(AREAS, BASES))
def test_the_case_holds_on_a_right_server(servers: RightServers, case: Case, base: Base) -> None:
    assert_holds(hurried(case, HURRY), base, servers)


@pytest.mark.parametrize(("case", "mutant"), mutant_rows(AREAS, MUTANTS))
def test_the_case_catches_its_mutant(servers: RightServers, case: Case, mutant: Mutant) -> None:
    assert_caught(hurried(case, HURRY, patience_s=MUTANT_PATIENCE_S), mutant, servers)


def test_each_case_has_a_mutant() -> None:
    assert_each_has_a_mutant(AREAS, MUTANTS)
