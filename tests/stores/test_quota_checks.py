"""Both stores of quotas keep the rules, and a store that breaks one is found."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator

import pytest

from harness.redis_server import RedisServer
from tidegate.errors import RateLimited
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.quota_port import QuotaStore, SharedReservation
from tidegate.stores.quota_scripts import PREFIX
from tidegate.stores.redis_quotas import RedisQuotas
from tidegate.system import entropy
from tidegate.testing.check_quotas import CHECKS, QuotasUnderTest
from tidegate.testing.memory_quotas import MemoryQuotas

Check = Callable[[QuotasUnderTest], Awaitable[None]]

SHIFT = """
for _, key in ipairs(redis.call('KEYS', ARGV[1]..'rate:*')) do
  local began = redis.call('HGET', key, 'b')
  if began and began ~= '' then
    redis.call('HSET', key, 'b', string.format('%.0f', tonumber(began) - tonumber(ARGV[2])))
  end
end
return 1
"""


class MemoryUnderTest:
    """One store for all servers."""

    def __init__(self, store: MemoryQuotas) -> None:
        self._store = store

    async def open(self) -> QuotaStore:
        return self._store

    async def advance(self, duration_s: float) -> None:
        self._store.advance(duration_s)


class RedisUnderTest:
    """Time passes by moving windows into the past."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.stores: list[RedisQuotas] = []

    async def open(self) -> RedisQuotas:
        store = RedisQuotas(self._url, entropy, timeout_s=10)
        if not self.stores:
            await store._client.flushall()
        self.stores.append(store)
        return store

    async def advance(self, duration_s: float) -> None:
        await self.stores[0]._client.eval(SHIFT, 0, PREFIX, round(duration_s * 1000))


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_store_in_memory_keeps_the_rules(check: Check) -> None:
    asyncio.run(run(check, MemoryUnderTest(MemoryQuotas())))


@pytest.mark.process
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_redis_keeps_the_rules(redis: RedisServer, check: Check) -> None:
    async def main() -> None:
        under_test = RedisUnderTest(redis.url)
        try:
            await check(under_test)
        finally:
            for store in under_test.stores:
                await store.aclose()

    asyncio.run(main())


async def run(check: Check, under_test: QuotasUnderTest) -> None:
    await check(under_test)


class Generous(MemoryQuotas):
    """Gives back more than was taken."""

    async def settle(self, reservation: SharedReservation, num_used: int | None) -> None:
        await super().settle(reservation, None if num_used is None else 0)


class Forgetful(MemoryQuotas):
    """Counts what the server took back."""

    async def settle(self, reservation: SharedReservation, num_used: int | None) -> None:
        await super().settle(reservation, num_used or 0)


class Blind(MemoryQuotas):
    """Counts one server's slots only."""

    async def claim_slot(self, key_id: str, quotas: Quotas) -> object:  # type: ignore[override]
        return await super().claim_slot(f"{key_id}{self._num_named}", quotas)


class Strict(MemoryQuotas):
    """Refuses what would overdraw."""

    async def reserve(self, key_id: str, quotas: Quotas, num_tokens: int) -> SharedReservation:
        most = quotas.tokens_per_minute
        return await super().reserve(key_id, quotas, num_tokens if most is None else min(num_tokens, most))


@pytest.mark.parametrize("broken", [Generous, Forgetful, Blind, Strict], ids=lambda broken: broken.__name__)
def test_a_store_that_breaks_a_rule_is_found(broken: type[MemoryQuotas]) -> None:
    num_found = 0
    for check in CHECKS:
        with contextlib.suppress(AssertionError, KeyError, RateLimited):
            asyncio.run(run(check, MemoryUnderTest(broken())))
            continue
        num_found += 1
    assert num_found > 0
