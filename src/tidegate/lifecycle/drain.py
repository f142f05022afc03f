"""Drain: whether new work is accepted, and whether the server has finished with the old.

Decides what follows from the wish to stop, however often it is uttered: a second one neither restarts a drain nor
cuts it short. Does not know: time, live requests, signals.
"""

from enum import Enum

from tidegate.errors import InternalError


class DrainState(Enum):
    ACCEPTING = "accepting"
    DRAINING = "draining"
    """New work is refused; live requests go on."""
    STOPPED = "stopped"
    """The last live request is gone, or the time for it is over."""


class DrainEvent(Enum):
    BEGIN = "begin"
    """Somebody wants the server to stop."""
    END = "end"
    """Nothing is live any more, or the drain took too long."""


DRAIN: dict[DrainState, dict[DrainEvent, DrainState]] = {
    DrainState.ACCEPTING: {DrainEvent.BEGIN: DrainState.DRAINING},
    DrainState.DRAINING: {DrainEvent.BEGIN: DrainState.DRAINING, DrainEvent.END: DrainState.STOPPED},
    DrainState.STOPPED: {DrainEvent.BEGIN: DrainState.STOPPED, DrainEvent.END: DrainState.STOPPED},
}


class Drain:
    """One server's drain. Begins ACCEPTING; never goes back."""

    def __init__(self) -> None:
        self._state = DrainState.ACCEPTING

    @property
    def state(self) -> DrainState:
        return self._state

    @property
    def is_accepting(self) -> bool:
        return self._state is DrainState.ACCEPTING

    def apply(self, event: DrainEvent) -> bool:
        """Takes one event; says whether the state changed. Raises InternalError for END without BEGIN."""
        new = DRAIN[self._state].get(event)
        if new is None:
            raise InternalError(f"drain event {event.name} is not legal in state {self._state.name}")
        changed = new is not self._state
        self._state = new
        return changed
