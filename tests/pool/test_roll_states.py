"""Engines restarted one after the other: the table row by row, and that a roll ends."""

import pytest

from tidegate.engines.pool.roll_states import ROLL, RollEvent, RollPhase

P, E = RollPhase, RollEvent
ROWS = {
    (P.DRAINING, E.EMPTY): P.STARTING,
    (P.DRAINING, E.NONE_LEFT): P.DONE,
    (P.DRAINING, E.ALONE): P.ABORTED,
    (P.DRAINING, E.FAILED): P.ABORTED,
    (P.DRAINING, E.STOPPED): P.ABORTED,
    (P.STARTING, E.READY): P.DRAINING,
    (P.STARTING, E.FAILED): P.ABORTED,
    (P.STARTING, E.STOPPED): P.ABORTED,
}


@pytest.mark.parametrize("phase", P, ids=lambda phase: phase.name)
@pytest.mark.parametrize("event", E, ids=lambda event: event.name)
def test_every_event_in_every_phase(phase: RollPhase, event: RollEvent) -> None:
    assert ROLL[phase].get(event) == ROWS.get((phase, event))
