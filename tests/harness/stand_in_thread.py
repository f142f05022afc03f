"""A stand-in of a remote engine on a loop of its own thread, for tests of whole servers."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from harness.remote_stand_in import Speech, StandIn

T = TypeVar("T")


class StandInThread:
    """Used as a context manager; it listens when entered. Further arguments are those of `StandIn`."""

    def __init__(self, speech: Speech, **arguments: Any) -> None:
        self._speech = speech
        self._arguments = arguments
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stand-in")

    def __enter__(self) -> "StandInThread":
        self._thread.start()
        self.stand_in = self.call(self._start)
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self.stand_in.aclose)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        return self.stand_in.url

    def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Runs a coroutine function on the stand-in's loop and returns its result."""

        async def run() -> T:
            return await function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(30)

    async def _start(self) -> StandIn:
        return await StandIn(self._speech, **self._arguments).start()
