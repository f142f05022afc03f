"""The restart of a pool's engines one after the other, as a table: what follows in which phase.

An event without a row changes nothing. Does not know engines, or time.
"""

from enum import Enum


class RollPhase(Enum):
    DRAINING = "draining"
    """The engine gets no requests; what it has ends by itself."""
    STARTING = "starting"
    """It has been ended, and the next one is on its way."""
    DONE = "done"
    ABORTED = "aborted"


class RollEvent(Enum):
    EMPTY = "empty"
    """The engine has nothing left."""
    READY = "ready"
    """The new one takes requests."""
    NONE_LEFT = "none left"
    """Every engine has had its turn."""
    FAILED = "failed"
    """The new one is not ready in time, or serves what its pool does not."""
    ALONE = "alone"
    """No other engine of the model is left that requests can go to."""
    STOPPED = "stopped"
    """Whoever runs the server has had enough."""


_ENDS: dict[RollEvent, RollPhase] = {
    RollEvent.FAILED: RollPhase.ABORTED,
    RollEvent.STOPPED: RollPhase.ABORTED,
}

ROLL: dict[RollPhase, dict[RollEvent, RollPhase]] = {
    RollPhase.DRAINING: {
        RollEvent.EMPTY: RollPhase.STARTING,
        RollEvent.NONE_LEFT: RollPhase.DONE,
        RollEvent.ALONE: RollPhase.ABORTED,
        **_ENDS,
    },
    RollPhase.STARTING: {RollEvent.READY: RollPhase.DRAINING, **_ENDS},
    RollPhase.DONE: {},
    RollPhase.ABORTED: {},
}
