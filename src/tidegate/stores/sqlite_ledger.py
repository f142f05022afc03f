"""SqliteLedger: the `Ledger` of one host, around a file. All work happens on one thread, never on the event loop."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from tidegate.lasting_task import end_task, start_lasting
from tidegate.lifecycle.ledger_port import Claim, ClaimAnswer, LedgerStatistics, LedgerUnavailable
from tidegate.stores.ledger_file import LedgerFile

UPKEEP_S = 10.0
"""How often what is over is forgotten, and what was recorded is made safe from a power loss."""

_log = logging.getLogger(__name__)
_P = ParamSpec("_P")
_T = TypeVar("_T")


class SqliteLedger:
    """Implements `Ledger`. Takes over the open file."""

    def __init__(self, file: LedgerFile, *, upkeep_s: float = UPKEEP_S) -> None:
        self._file = file
        self._upkeep_s = upkeep_s
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._given_up: set[str] = set()
        """Generations whose end could not be written: as many as there are pending entries, at most."""
        self._upkeep: asyncio.Task[None] | None = None
        self._is_closed = False

    def start(self) -> None:
        """Begins the upkeep, on the running event loop."""
        self._upkeep = start_lasting(self._keep_up(), "ledger upkeep")

    async def claim(self, operation: bytes, fingerprint: bytes) -> ClaimAnswer:
        """See `Ledger.claim`."""
        return await self._run(self._file.claim, operation, fingerprint)

    async def record(self, claim: Claim, answer: bytes) -> bool:
        """See `Ledger.record`."""
        try:
            return await self._run(self._file.record, claim, answer)
        except LedgerUnavailable:
            self._given_up.add(claim.generation)
            raise

    async def release(self, claim: Claim) -> None:
        """See `Ledger.release`."""
        try:
            await self._run(self._file.release, claim.generation)
        except LedgerUnavailable:
            self._given_up.add(claim.generation)

    def statistics(self) -> LedgerStatistics:
        """See `Ledger.statistics`."""
        return self._file.statistics()

    async def aclose(self) -> None:
        """See `Ledger.aclose`."""
        await end_task(self._upkeep)
        if not self._is_closed:
            self._is_closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._file.close)
            self._thread.shutdown(wait=False)

    async def _run(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        if self._is_closed:
            raise LedgerUnavailable("the ledger is closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: function(*args, **kwargs))
        except sqlite3.Error as error:
            raise LedgerUnavailable(f"SQLite: {error}") from error

    async def _keep_up(self) -> None:
        while True:
            try:
                for generation in tuple(self._given_up):
                    await self._run(self._file.release, generation)
                    self._given_up.discard(generation)
                while await self._run(self._file.tidy):
                    pass
                await self._run(self._file.sync)
            except LedgerUnavailable as error:
                _log.warning("the ledger of idempotency keys cannot be kept up: %s", error)
            await asyncio.sleep(self._upkeep_s)
