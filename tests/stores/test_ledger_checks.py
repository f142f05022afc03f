"""The shipped checks against every ledger of ours: SQLite, a real Redis, and the one for tests."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.redis_server import RedisServer
from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.lifecycle.ledger_port import Ledger
from tidegate.stores.ledger_file import LedgerFile
from tidegate.stores.redis_ledger import RedisLedger
from tidegate.stores.redis_scripts import PREFIX
from tidegate.stores.sqlite_ledger import SqliteLedger
from tidegate.system import entropy
from tidegate.testing.check_ledger import CHECKS, Check
from tidegate.testing.memory_ledger import MemoryLedger, MemoryStore


class MovedClock:
    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    async def advance(self, duration_s: float) -> None:
        self.now_s += duration_s


class InMemory(MovedClock):
    def __init__(self) -> None:
        super().__init__()
        self.store: MemoryStore | None = None

    async def open(self, limits: LedgerLimits) -> MemoryLedger:
        self.store = self.store or MemoryStore(limits, lambda: self.now_s)
        return MemoryLedger(self.store, str(len(self.store.live_owners)))

    async def kill(self, ledger: Any) -> None:
        await ledger.aclose()

    async def aclose(self) -> None:
        pass


class OnSqlite(MovedClock):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._path = folder / "answers.sqlite3"
        self._opened: list[tuple[SqliteLedger, LedgerFile]] = []

    async def open(self, limits: LedgerLimits) -> SqliteLedger:
        file = LedgerFile(self._path, limits, lambda: self.now_s, f"owner{len(self._opened)}")
        ledger = SqliteLedger(file, upkeep_s=3600)
        self._opened.append((ledger, file))
        return ledger

    async def kill(self, ledger: Ledger) -> None:
        for opened, file in self._opened:
            if opened is ledger:
                descriptor = file._owner._descriptor
                assert descriptor is not None
                os.close(descriptor)  # what the kernel does
                file._owner._descriptor = None

    async def aclose(self) -> None:
        for ledger, _ in self._opened:
            await ledger.aclose()
        assert [path.name for path in self._path.parent.iterdir()] == [self._path.name]


class OnRedis:
    def __init__(self, url: str) -> None:
        self._url = url
        self._opened: list[RedisLedger] = []

    async def open(self, limits: LedgerLimits) -> RedisLedger:
        ledger = RedisLedger(self._url, limits, entropy, lease_s=60)
        if not self._opened:
            await ledger._client.flushall()
        self._opened.append(ledger)
        return ledger

    async def kill(self, ledger: Any) -> None:
        ledger._held.clear()
        await self._shift("pending", 61)

    async def advance(self, duration_s: float) -> None:
        await self._shift("settled", duration_s)

    async def _shift(self, key: str, duration_s: float) -> None:
        client = self._opened[-1]._client
        for member in await client.zrange(PREFIX + key, 0, -1):
            await client.zincrby(PREFIX + key, -duration_s * 1000, member)

    async def aclose(self) -> None:
        for ledger in self._opened:
            await ledger.aclose()


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


async def run(under_test: Any, check: Check) -> None:
    try:
        await check(under_test)
    finally:
        await under_test.aclose()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_ledger_in_memory_keeps_the_port(check: Check) -> None:
    asyncio.run(run(InMemory(), check))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_ledger_in_sqlite_keeps_the_port(check: Check, tmp_path: Path) -> None:
    asyncio.run(run(OnSqlite(tmp_path), check))


@pytest.mark.process
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_ledger_in_redis_keeps_the_port(check: Check, redis: RedisServer) -> None:
    asyncio.run(run(OnRedis(redis.url), check))
