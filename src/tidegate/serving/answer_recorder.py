"""Claims of idempotency keys on behalf of live requests: each is ended exactly once, whatever happens to its request.

A claim is made before anything else is done for a request, and ends in one of two ways: its answer is recorded before
the caller gets the last bytes of it, or it is released. Both go on when the request's task is cancelled meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from tidegate.errors import IdempotencyKeyInUse
from tidegate.lifecycle.fingerprint import fingerprint
from tidegate.lifecycle.ledger_port import Claim, ClaimAnswer, Fresh, Ledger, LedgerUnavailable
from tidegate.lifecycle.recorded_answer import RecordedAnswer, pack, unpack
from tidegate.observability.observer import Observer

INLINE_BYTES = 16 * 1024
"""Bodies and answers up to this size are worked on in the event loop: a hand-over costs more than the work."""
MAX_RECORDING_BYTES = 256 * 1024 * 1024
"""Event bytes of all streams that are being recorded."""

_log = logging.getLogger(__name__)
_P = ParamSpec("_P")
_T = TypeVar("_T")


class AnswerRecorder:
    """One for each server process. `max_answer_bytes` bounds an answer, before and after it is packed."""

    def __init__(self, ledger: Ledger, observer: Observer, max_answer_bytes: int) -> None:
        self.ledger = ledger
        self.observer = observer
        self.max_answer_bytes = max_answer_bytes
        self.num_recording_bytes = 0
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="idempotency")
        self._tasks: set[asyncio.Task[Any]] = set()

    async def fingerprint(self, method: str, route: str, body: bytes) -> bytes | None:
        """See `lifecycle.fingerprint`."""
        return await self._work(len(body), fingerprint, method, route, body)

    async def claim(self, operation: bytes, request: bytes) -> ClaimAnswer:
        """See `Ledger.claim`. When this is cancelled, a claim that is made all the same is given up."""
        task = self.spawn(self.ledger.claim(operation, request))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._let_go)
            raise

    async def pack(self, answer: RecordedAnswer) -> bytes:
        return await self._work(len(answer.body), pack, answer)

    async def unpack(self, stored: bytes) -> RecordedAnswer:
        """Raises ValueError."""
        return await self._work(len(stored), unpack, stored)

    def spawn(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Runs something to its end, beyond the end of the request that asked for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def aclose(self) -> None:
        """Waits for what is being written, then closes the ledger. Idempotent."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self.ledger.aclose()
        self._threads.shutdown(wait=False)

    def _let_go(self, task: asyncio.Task[ClaimAnswer]) -> None:
        if task.cancelled() or task.exception() is not None:
            return
        found = task.result()
        if isinstance(found, Fresh):
            OpenClaim(self, found.claim).release_soon()

    async def _work(self, size: int, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        if size <= INLINE_BYTES:
            return function(*args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: function(*args, **kwargs))


class OpenClaim:
    """A claim of this process. The first of `record` and `release` decides; later ones wait for its end."""

    def __init__(self, recorder: AnswerRecorder, claim: Claim) -> None:
        self.recorder = recorder
        self._claim = claim
        self._end: asyncio.Task[bool] | None = None

    async def record(self, answer: RecordedAnswer) -> None:
        """Returns when the answer may go out: it is recorded, or nobody can record it now.

        Raises IdempotencyKeyInUse when the claim was lost to another request: the answer of that one counts.
        Cancelling this cancels nothing of it.
        """
        if self._end is None:
            self._end = self.recorder.spawn(self._record(answer))
        if not await asyncio.shield(self._end):
            raise IdempotencyKeyInUse("Another request with this idempotency key has taken over; try again soon.")

    async def release(self, outcome: str = "released") -> None:
        """Lets a retry run. Cancelling this cancels nothing of it."""
        self.release_soon(outcome)
        if self._end is not None:
            await asyncio.shield(self._end)

    def release_soon(self, outcome: str = "released") -> None:
        """The same in the background."""
        if self._end is None:
            self._end = self.recorder.spawn(self._release(outcome))

    async def _record(self, answer: RecordedAnswer) -> bool:
        recorder = self.recorder
        if len(answer.body) <= recorder.max_answer_bytes:
            packed = await recorder.pack(answer)
            if len(packed) <= recorder.max_answer_bytes:
                return await self._store(packed)
        return await self._release("too_large")

    async def _store(self, packed: bytes) -> bool:
        try:
            is_ours = await self.recorder.ledger.record(self._claim, packed)
        except LedgerUnavailable as error:
            _log.error("an answer goes out unrecorded, a retry of it would run again: %s", error)
            self.recorder.observer.claim_ended("not_recorded")
            return True
        self.recorder.observer.claim_ended("recorded" if is_ours else "superseded")
        return is_ours

    async def _release(self, outcome: str) -> bool:
        await self.recorder.ledger.release(self._claim)
        self.recorder.observer.claim_ended(outcome)
        return True
