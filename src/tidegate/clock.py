"""Time as a port. Nothing that decides reads a clock: it is given instants."""

from typing import Protocol


class Clock(Protocol):
    """Two clocks: one for durations, one for dates."""

    def now(self) -> float:
        """Seconds on a monotonic clock; only differences mean anything."""
        ...

    def wall(self) -> float:
        """Seconds since the Unix epoch."""
        ...
