"""The session's table: what a peer may do in each state, and what each row is for."""

import itertools

import pytest

from tidegate.engine import session
from tidegate.engine.framing import FramingError
from tidegate.engine.session import TRANSITIONS, EngineSession, SessionEvent, SessionState

E, S = SessionEvent, SessionState

# One life of a connection a line: events, and whether requests may be submitted at its end.
LIVES: list[tuple[list[SessionEvent], SessionState]] = [
    ([], S.CONNECTING),
    ([E.GREETED], S.READY),
    ([E.GREETED, E.REPORTED, E.REPORTED], S.READY),
    ([E.FAULTED], S.LOST),
    ([E.BROKEN], S.LOST),
    ([E.CLOSED], S.LOST),
    ([E.GREETED, E.FAULTED, E.CLOSED], S.LOST),
    ([E.GREETED, E.BROKEN, E.CLOSED], S.LOST),
    ([E.GREETED, E.CLOSED], S.LOST),
]

VIOLATIONS: list[tuple[SessionState, SessionEvent]] = [
    (S.CONNECTING, E.REPORTED),
    (S.READY, E.GREETED),
    (S.LOST, E.GREETED),
    (S.LOST, E.REPORTED),
    (S.LOST, E.FAULTED),
    (S.LOST, E.BROKEN),
]


def check_lives() -> None:
    for events, end in LIVES:
        machine = EngineSession()
        for event in events:
            machine.apply(event)
        assert machine.state is end
        assert machine.is_ready is (end is S.READY)


def test_each_life_ends_where_it_should() -> None:
    check_lives()


@pytest.mark.parametrize("row", list(TRANSITIONS), ids=lambda row: f"{row[0].name}-{row[1].name}")
def test_removing_any_row_is_noticed(row: tuple[SessionState, SessionEvent], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(session.TRANSITIONS, row)
    with pytest.raises((AssertionError, FramingError)):
        check_lives()


def test_every_pair_has_a_row_or_is_a_violation() -> None:
    pairs = set(itertools.product(S, E))
    assert set(TRANSITIONS).isdisjoint(VIOLATIONS)
    assert pairs == set(TRANSITIONS) | set(VIOLATIONS)


@pytest.mark.parametrize(("state", "event"), VIOLATIONS)
def test_a_violation_raises_and_changes_nothing(state: SessionState, event: SessionEvent) -> None:
    machine = EngineSession()
    machine.state = state
    with pytest.raises(FramingError, match=f"{event.name} while {state.name}"):
        machine.apply(event)
    assert machine.state is state


def test_nothing_leads_out_of_lost() -> None:
    assert {after for (before, _), after in TRANSITIONS.items() if before is S.LOST} == {S.LOST}
