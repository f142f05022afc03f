"""RestartPolicy: what to do when an engine that was started here has ended.

Decides whether to start it again, and how long to wait first: each failure in a row doubles the wait, up to a cap; an
engine that served for a healthy time starts the row anew. An engine that served once is restarted for ever. One that
never served, several times in a row, is given up: its model or options are wrong, and only a person can help. Does not
know: processes, clocks, why the engine ended.
"""

from dataclasses import dataclass

from tidegate.engine.exit_code import EngineExit
from tidegate.engines.life.backoff import Backoff


@dataclass(frozen=True, slots=True)
class RestartSettings:
    """`max_failed_starts` None: never give up."""

    first_wait_s: float = 0.25
    max_wait_s: float = 30.0
    healthy_s: float = 60.0
    max_failed_starts: int | None = 3


@dataclass(frozen=True, slots=True)
class EngineEnd:
    """How an engine ended. `ready_s` is how long it served; None when it never did. `was_asked`: we wanted it to."""

    exit_code: int
    ready_s: float | None
    was_asked: bool = False


@dataclass(frozen=True, slots=True)
class Restart:
    wait_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    num_failed_starts: int


class RestartPolicy:
    """Counts what happened in a row."""

    def __init__(self, settings: RestartSettings) -> None:
        self._settings = settings
        self._backoff = Backoff(settings.first_wait_s, settings.max_wait_s)
        self._num_failed_starts = 0
        self._has_served = False

    @property
    def num_in_row(self) -> int:
        """Ends that nobody asked for, since the engine last served for a healthy time."""
        return self._backoff.num_in_row

    def decide(self, end: EngineEnd) -> Restart | GiveUp:
        """Takes note of one end; returns what follows."""
        if end.ready_s is not None:
            self._has_served = True
            if end.was_asked or end.ready_s >= self._settings.healthy_s:
                self._backoff.reset()
        if end.was_asked:
            return Restart(0.0)
        if end.ready_s is None and not self._has_served:
            self._num_failed_starts += 1
            most = self._settings.max_failed_starts
            is_hopeless = end.exit_code == EngineExit.USAGE
            if most is not None and (is_hopeless or self._num_failed_starts >= most):
                return GiveUp(self._num_failed_starts)
        return Restart(self._backoff.next_wait_s())
