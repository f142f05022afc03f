"""Each case about what an answer says, and how it is streamed, holds on a right server and catches its mutants."""

from collections.abc import Iterator

import pytest

from harness.judged_case import (
    RightServers,
    assert_caught,
    assert_each_has_a_mutant,
    assert_holds,
    mutant_rows,
    right_rows,
)
from harness.mutant import Base, Mutant
from mutants import chat, completions, stream, stream_framing
from tidegate.conformance.case import Case

AREAS = ("chat", "completions", "stream")
MUTANTS = {**chat.MUTANTS, **completions.MUTANTS, **stream.MUTANTS, **stream_framing.MUTANTS}
BASES: dict[str, Base] = {"stream.heartbeat": "restless"}
"""Cases whose right server is not the scripted one."""

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def servers() -> Iterator[RightServers]:
    with RightServers() as running:
        yield running


@pytest.mark.parametrize(("case", "base"), right_rows(AREAS, BASES))
def test_the_case_holds_on_a_right_server(servers: RightServers, case: Case, base: Base) -> None:
    assert_holds(case, base, servers)


@pytest.mark.parametrize(("case", "mutant"), mutant_rows(AREAS, MUTANTS))
def test_the_case_catches_its_mutant(servers: RightServers, case: Case, mutant: Mutant) -> None:
    assert_caught(case, mutant, servers)


def test_each_case_has_a_mutant() -> None:
    assert_each_has_a_mutant(AREAS, MUTANTS)
