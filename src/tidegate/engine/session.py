"""EngineSession: what the server half believes about one connection to an engine.

Decides whether a request may be submitted, and whether a message may come at this point. One session lives as long as
its connection: after LOST there is only a new one. Does not know: bytes, sockets, epochs (whoever feeds it compares
them), requests, restarts.
"""

from enum import Enum, auto

from tidegate.engine.framing import FramingError


class SessionState(Enum):
    CONNECTING = auto()
    """The connection stands; the engine has not said what it serves. It may still be loading."""
    READY = auto()
    """The engine takes requests."""
    LOST = auto()
    """Nothing more is sent or believed. Whatever was open has failed."""


class SessionEvent(Enum):
    GREETED = auto()
    """EngineReady, of a protocol and an epoch that we accept."""
    REPORTED = auto()
    """StepOutputs or Pong."""
    FAULTED = auto()
    """EngineFault: the engine says that it will exit."""
    BROKEN = auto()
    """Bytes that are no message, or a message that may not come now."""
    CLOSED = auto()
    """The connection has ended, by either side."""


TRANSITIONS: dict[tuple[SessionState, SessionEvent], SessionState] = {
    (SessionState.CONNECTING, SessionEvent.GREETED): SessionState.READY,
    (SessionState.CONNECTING, SessionEvent.FAULTED): SessionState.LOST,
    (SessionState.CONNECTING, SessionEvent.BROKEN): SessionState.LOST,
    (SessionState.CONNECTING, SessionEvent.CLOSED): SessionState.LOST,
    (SessionState.READY, SessionEvent.REPORTED): SessionState.READY,
    (SessionState.READY, SessionEvent.FAULTED): SessionState.LOST,
    (SessionState.READY, SessionEvent.BROKEN): SessionState.LOST,
    (SessionState.READY, SessionEvent.CLOSED): SessionState.LOST,
    (SessionState.LOST, SessionEvent.CLOSED): SessionState.LOST,
}


class EngineSession:
    """Holds the state; the table above is all its knowledge."""

    def __init__(self) -> None:
        self.state = SessionState.CONNECTING

    @property
    def is_ready(self) -> bool:
        return self.state is SessionState.READY

    def apply(self, event: SessionEvent) -> SessionState:
        """Returns the state after `event`. Raises FramingError, changing nothing, where the table has no row."""
        try:
            self.state = TRANSITIONS[self.state, event]
        except KeyError:
            raise FramingError(f"{event.name} while {self.state.name}") from None
        return self.state
