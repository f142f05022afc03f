"""What the state of an engine that was started here is, in words that tell an operator why nothing is served.

Decides words only. Does not know: processes, clocks (instants are given), what the policy rests on.
"""

import math
from dataclasses import dataclass
from enum import Enum

from tidegate.engine.exit_code import EngineExit
from tidegate.engines.life.restart_policy import GiveUp, Restart

LOOP_FROM = 3
"""Unasked ends in a row that are called a crash loop."""

_EXITS = {
    EngineExit.CLEAN: "it ended by itself",
    EngineExit.USAGE: "its options or its runtime folder are wrong",
    EngineExit.START_FAILED: "the model or the backend could not be loaded",
    EngineExit.BACKEND_FAILED: "a forward pass failed",
    EngineExit.INTERNAL: "an internal error",
}


class EnginePhase(Enum):
    """What is being done about the engine."""

    STARTING = "starting"
    READY = "ready"
    ENDING = "ending"
    """The connection is gone; the process has not been seen to end."""
    WAITING = "waiting"
    """Between the end of one process and the start of the next."""
    FAILED = "failed"
    """Given up."""


@dataclass(frozen=True, slots=True)
class EngineCondition:
    """`last_end` says how the last process ended, or its connection; None for the first. `next_start_at`: instant."""

    phase: EnginePhase = EnginePhase.STARTING
    last_end: str | None = None
    num_in_row: int = 0
    """Ends that nobody asked for, since the engine last served for a healthy time."""
    next_start_at: float | None = None

    def describe(self, now: float) -> str:
        """Returns one phrase, without a full stop."""
        because = f": {self.last_end}" if self.last_end is not None else ""
        match self.phase:
            case EnginePhase.READY:
                return "the engine is ready"
            case EnginePhase.FAILED:
                return f"the engine was given up{because}"
            case EnginePhase.STARTING:
                doing = "the engine is starting" if self.last_end is None else "the engine is starting again"
            case EnginePhase.ENDING:
                doing = "the engine has gone"
            case EnginePhase.WAITING:
                wait_s = max(0, math.ceil((self.next_start_at or now) - now))
                doing = f"the engine has ended and is started again in {wait_s} s"
        if self.num_in_row >= LOOP_FROM:
            return f"crash loop, {self.num_in_row} ends in a row; {doing}{because}"
        return doing + because


def condition_after(decision: Restart | GiveUp, last_end: str, num_in_row: int, now: float) -> EngineCondition:
    """Returns the condition once an engine has ended and it is decided what follows. `now`: instant."""
    if isinstance(decision, GiveUp):
        return EngineCondition(EnginePhase.FAILED, last_end, num_in_row)
    return EngineCondition(EnginePhase.WAITING, last_end, num_in_row, now + decision.wait_s)


def describe_end(exit_code: int, signal_name: str | None, verdict: str | None, *, was_asked: bool) -> str:
    """Returns how a process ended. `verdict` is why we killed it ourselves, if we did."""
    if verdict is not None:
        return f"{verdict}, and was killed"
    if was_asked:
        return "a restart was asked for"
    if signal_name is not None:
        return f"it was killed by {signal_name}"
    words = _EXITS[EngineExit(exit_code)] if exit_code in set(EngineExit) else "an unknown reason"
    return f"exit code {exit_code} ({words})"
