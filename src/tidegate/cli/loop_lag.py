"""LoopLagProbe: how late the event loop runs what is due, measured by a timer of its own."""

import asyncio
from collections.abc import Callable

PERIOD_S = 0.1


class LoopLagProbe:
    """Tells `note` the lateness of one timer after the other, in seconds, every `PERIOD_S` seconds or so.

    A timer, not a task: it costs a few microseconds each time, and nothing waits for its end.
    """

    def __init__(self, note: Callable[[float], None]) -> None:
        self._note = note
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begins, on the running loop."""
        loop = asyncio.get_running_loop()
        self._arm(loop)

    def stop(self) -> None:
        """Ends. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        due_at = loop.time() + PERIOD_S
        self._timer = loop.call_at(due_at, self._tick, loop, due_at)

    def _tick(self, loop: asyncio.AbstractEventLoop, due_at: float) -> None:
        self._note(max(0.0, loop.time() - due_at))
        self._arm(loop)
