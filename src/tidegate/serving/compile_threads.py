"""Threads that compile grammars: never the event loop, and never more than a fixed number.

A job that was taken back before a thread began it is not begun. One that was begun runs to its end: nothing can stop a
compilation from outside. Threads start when they are needed, and end with the loop's `aclose`.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Job:
    """`work` runs on a thread and must not raise; `on_start` and `on_end` are called on the event loop."""

    work: Callable[[], None]
    on_start: Callable[[], None]
    on_end: Callable[[], None]


class CompileThreads:
    """Belongs to the event loop that submits first. All methods are called on it."""

    def __init__(self, num_threads: int) -> None:
        self._num_threads = num_threads
        self._waiting: deque[Job] = deque()
        self._has_work = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._num_busy = 0
        self._num_ended = 0
        self._all_ended = asyncio.Event()
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    def submit(self, job: Job) -> None:
        """Raises RuntimeError after `aclose`."""
        self._loop = asyncio.get_running_loop()
        with self._has_work:
            if self._is_closed:
                raise RuntimeError("the threads that compile grammars have ended")
            self._waiting.append(job)
            if len(self._waiting) + self._num_busy > len(self._threads) < self._num_threads:
                thread = threading.Thread(target=self._run, name=f"grammar-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._has_work.notify()

    def take_back(self, job: Job) -> bool:
        """Returns whether the job had not been begun, and never will be."""
        with self._has_work:
            try:
                self._waiting.remove(job)
            except ValueError:
                return False
            return True

    async def aclose(self, grace_s: float = 5.0) -> None:
        """Begins no further job, and waits for those that run, at most `grace_s`. Idempotent."""
        with self._has_work:
            self._is_closed = True
            self._waiting.clear()
            self._has_work.notify_all()
        self._check_all_ended()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._all_ended.wait()
                for thread in self._threads:
                    thread.join()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            self._tell(job.on_start)
            job.work()
            with self._has_work:
                self._num_busy -= 1
            self._tell(job.on_end)
        self._tell(self._note_end)

    def _note_end(self) -> None:
        self._num_ended += 1
        self._check_all_ended()

    def _check_all_ended(self) -> None:
        if self._num_ended == len(self._threads):
            self._all_ended.set()

    def _next(self) -> Job | None:
        with self._has_work:
            while not self._waiting and not self._is_closed:
                self._has_work.wait()
            if self._is_closed:
                return None
            self._num_busy += 1
            return self._waiting.popleft()

    def _tell(self, callback: Callable[[], None]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended before this thread
                self._loop.call_soon_threadsafe(callback)
