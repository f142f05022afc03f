"""EngineLife: one life of an engine after the other, and who is told.

A watch of any kind goes the same rounds: a life from its start to its end, a wait, the next life; or the engine is
given up, until somebody takes it up again. What a life is, how its end is noticed and how long to wait afterwards is
the watch's own affair. A fault of the watch itself ends a life as well: it is reported, and an engine that has never
served is given up for it, so that nobody waits for ever.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from tidegate.engine.messages import EngineReady
from tidegate.engines.life.backoff import RETRY_MARGIN_S
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.life.wait_event import wait_event

FAULT_WAIT_S = 5.0
"""The wait after a fault of the watch itself."""

Live: TypeAlias = Callable[[], Awaitable[float | EngineStartFailed]]
"""Runs one life. Returns the seconds to wait before the next, or why there will be none."""


class LivingEngine(Protocol):
    """What is asked of the engine."""

    retry_after_s: float

    @property
    def is_ready(self) -> bool: ...

    @property
    def on_ready(self) -> list[Callable[[EngineReady], None]]: ...

    @property
    def on_lost(self) -> list[Callable[[str], None]]: ...


class EngineLife:
    """Used on one event loop: `start`, then `aclose`, or `end` and `wait_end` where a life must end by itself.

    `name` is the watch's, for people.
    """

    def __init__(self, name: str, engine: LivingEngine, live: Live) -> None:
        self._name = name
        self._engine = engine
        self._live = live
        self._failure: EngineStartFailed | None = None
        self._task: asyncio.Task[None] | None = None
        self._has_served = False
        self._is_ending = self._is_cut = False
        self._news = asyncio.Event()
        self._hurry = asyncio.Event()

    @property
    def is_ending(self) -> bool:
        """Whether the present life is to be the last one."""
        return self._is_ending

    def start(self) -> None:
        """Begins the first life, and returns at once."""
        self._engine.on_ready.append(self._note_ready)
        self._engine.on_lost.append(self._note_lost)
        self._begin()

    def hurry(self) -> None:
        """Cuts short the wait after the present life, or the one that is under way."""
        self._hurry.set()

    def take_up(self) -> bool:
        """Begins anew, if the engine was given up. Says whether it was."""
        if self._task is None or not self._task.done() or self._is_ending:
            return False
        self._failure = None
        self._begin()
        return True

    def fail(self, failure: EngineStartFailed) -> None:
        """Whoever waits for the engine is told that it will not come as things are. The lives may go on."""
        self._failure = failure
        self._news.set()

    async def wait_ready(self) -> None:
        """Waits until the engine takes requests. Raises EngineStartFailed when it will not, or the watch ends."""
        while not self._engine.is_ready:
            if self._failure is not None:
                raise self._failure
            if self._is_ending:
                raise EngineStartFailed("The engine did not become ready: this server ends.")
            await self.wait_news()

    async def wait_news(self) -> None:
        """Waits until the engine becomes ready, is lost or given up, or the watch ends."""
        self._news.clear()
        await self._news.wait()

    def end(self) -> None:
        """No further life begins, and nobody waits for one."""
        self._is_ending = True
        self._hurry.set()
        self._news.set()

    async def wait_end(self) -> None:
        """Waits until the last life is over; after `end`."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def aclose(self) -> None:
        """Cuts the present life, and ends. Idempotent."""
        self.end()
        if self._task is not None and not self._is_cut:  # a life that ends already is left to it
            self._is_cut = True
            self._task.cancel()
        await self.wait_end()

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def _run(self) -> None:
        while not self._is_ending:
            self._hurry.clear()
            then = await self._live_once()
            if isinstance(then, EngineStartFailed):
                self.fail(then)
                return
            self._engine.retry_after_s = then + RETRY_MARGIN_S
            await wait_event(self._hurry, then)

    async def _live_once(self) -> float | EngineStartFailed:
        try:
            return await self._live()
        except Exception as fault:
            context = {"message": f"the {self._name} failed", "exception": fault}
            asyncio.get_running_loop().call_exception_handler(context)
            if self._has_served:
                return FAULT_WAIT_S
            return EngineStartFailed(f"The {self._name} failed: {type(fault).__name__}: {fault}.")

    def _note_ready(self, _greeting: EngineReady) -> None:
        self._has_served = True
        self._failure = None
        self._news.set()

    def _note_lost(self, _reason: str) -> None:
        self._news.set()
