"""What the state of a remote engine is, in words that tell an operator why nothing is served; and who it may be.

Decides words, and whether an engine that came back is the one that was served. Knows no clocks and no sockets.
"""

import math
from dataclasses import dataclass, replace
from enum import Enum

from tidegate.engines.remote.ask import EngineUnfit
from tidegate.engines.remote.dialect import Recognition


class RemotePhase(Enum):
    """What is known of the engine."""

    SOUGHT = "sought"
    READY = "ready"
    AWAY = "away"
    UNFIT = "unfit"
    """It answers, but is not served."""


@dataclass(frozen=True, slots=True)
class RemoteCondition:
    """`reason` says why it is not ready. `next_try_at`: instant."""

    url: str
    phase: RemotePhase = RemotePhase.SOUGHT
    reason: str | None = None
    next_try_at: float | None = None

    def again_at(self, instant: float) -> "RemoteCondition":
        return replace(self, next_try_at=instant)

    def describe(self, now: float) -> str:
        """Returns one phrase, without a full stop."""
        because = f": {self.reason}" if self.reason is not None else ""
        match self.phase:
            case RemotePhase.READY:
                return f"the engine at {self.url} is ready"
            case RemotePhase.SOUGHT:
                return f"the engine at {self.url} has not answered yet"
            case RemotePhase.UNFIT:
                return f"the engine at {self.url} cannot be served{because}"
            case RemotePhase.AWAY:
                wait_s = max(0, math.ceil((self.next_try_at or now) - now))
                return f"the engine at {self.url} is away{because}; it is looked for again in {wait_s} s"


def compare_identity(first: Recognition, now: Recognition) -> None:
    """Raises EngineUnfit, with both values, when another engine answers than the one that was served first."""
    present = dict(now.identity)
    for name, value in first.identity:
        if present.get(name) != value:
            raise EngineUnfit(f"its {name} is {present.get(name)!r} now, and this server was started for {value!r}")
