"""DeadlineTimer: the one timer of a request that has a deadline; none where there is no deadline.

Which deadline is next, and whether it has passed, `lifecycle/deadline.py` decides; this asks again at the right time.
"""

import asyncio
from collections.abc import Callable

from tidegate.clock import Clock
from tidegate.errors import DeadlineExceeded
from tidegate.lifecycle.deadline import Deadlines

SAME_INSTANT_S = 1e-6
MIN_WAIT_S, MAX_WAIT_S = 0.001, 86_400.0
"""A timer may fire a moment early, and event loops bound how far ahead one may lie: then it is set again."""


class DeadlineTimer:
    """Tells `on_passed` once, with the error of the deadline that passed first."""

    def __init__(
        self,
        deadlines: Deadlines,
        clock: Clock,
        has_first_token: Callable[[], bool],
        on_passed: Callable[[DeadlineExceeded], None],
    ) -> None:
        self._deadlines = deadlines
        self._clock = clock
        self._has_first_token = has_first_token
        self._on_passed = on_passed
        self._handle: asyncio.TimerHandle | None = None

    def check(self) -> None:
        """Tells of a deadline that has passed; otherwise waits for the next that matters."""
        self._handle = None
        now, has_first_token = self._clock.now(), self._has_first_token()
        due = self._deadlines.next(has_first_token=has_first_token)
        if due is None:
            return
        wait_s = due.at - now
        if wait_s < SAME_INSTANT_S:
            self._on_passed(due.error(now))
        else:
            wait_s = min(max(wait_s, MIN_WAIT_S), MAX_WAIT_S)
            self._handle = asyncio.get_running_loop().call_later(wait_s, self.check)

    def cancel(self) -> None:
        """Idempotent."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
