"""DrainOrder: that the server shall end, and how long running requests may go on. Given by signals and by operators."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from tidegate.cli.settings import ServerSettings


class DrainOrder:
    """Given once; later ones can only move the end, and only where they name a time. Belongs to one event loop."""

    def __init__(self, settings: ServerSettings) -> None:
        self._timeout_s = settings.drain_timeout_s
        self._delay_s = settings.drain_delay_s
        self._first_at = self._counted_from = 0.0
        self._given = asyncio.Event()
        self._moved = asyncio.Event()

    @property
    def is_given(self) -> bool:
        return self._given.is_set()

    @property
    def timeout_s(self) -> float:
        """How long running requests may go on, from the order on or from when its time was last moved."""
        return self._timeout_s

    def give(self, timeout_s: float | None = None) -> None:
        """Orders the end. With `timeout_s` running requests have that long from now, whatever was said before."""
        now = asyncio.get_running_loop().time()
        if not self.is_given:
            self._first_at = self._counted_from = now
            self._given.set()
        if timeout_s is not None:
            self._timeout_s, self._counted_from = timeout_s, now
            self._moved.set()

    async def wait_given(self) -> None:
        """Waits for the order."""
        await self._given.wait()

    async def wait_requests(self, wait_empty: Callable[[], Awaitable[None]]) -> None:
        """Waits until `wait_empty` has returned, or until the time for requests is over. The order has been given."""
        empty = asyncio.ensure_future(wait_empty())
        try:
            while not empty.done() and (left_s := self._counted_from + self._timeout_s - _now()) > 0:
                self._moved.clear()
                moved = asyncio.ensure_future(self._moved.wait())
                await asyncio.wait({empty, moved}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                moved.cancel()
        finally:
            empty.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await empty

    async def wait_delay(self) -> None:
        """Waits until the shortest drain is over."""
        await asyncio.sleep(max(0.0, self._first_at + self._delay_s - _now()))


def _now() -> float:
    return asyncio.get_running_loop().time()
