"""A clock that moves only when told to."""


class ManualClock:
    """Implements `Clock`. Both its clocks move together; the wall clock starts at a fixed date."""

    def __init__(self, *, now: float = 1000.0, wall: float = 1_750_000_000.0) -> None:
        self._now = now
        self._wall = wall

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._wall

    def advance(self, duration_s: float) -> None:
        """Moves on by `duration_s` seconds. Raises ValueError when it is negative."""
        if duration_s < 0:
            raise ValueError(f"time does not run backwards: {duration_s}")
        self._now += duration_s
        self._wall += duration_s

    def advance_to(self, instant: float) -> None:
        """Moves on to `instant` of the monotonic clock, and stays where it is when that is past."""
        self.advance(max(0.0, instant - self._now))
