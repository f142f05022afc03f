"""Quotas in a real Redis: servers that die, a Redis that goes away and comes back empty, and what is left in it."""

import asyncio
import builtins
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from harness.redis_server import RedisServer
from tidegate.errors import RateLimited
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.quota_port import QuotaBroken, QuotaUnavailable
from tidegate.stores.quota_scripts import MAX_LIFE_MS, PREFIX
from tidegate.stores.redis_quotas import RedisQuotas
from tidegate.system import entropy

ONE = Quotas(concurrency=1)
RATES = Quotas(requests_per_minute=5, tokens_per_minute=100)
LEASE_S = 0.6
process = pytest.mark.process
Test = Callable[[RedisQuotas, RedisQuotas], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


def with_stores(redis: RedisServer, test: Test, *, timeout_s: float = 10, retry_s: float = 0.05) -> None:
    """Runs a test with two servers' stores, both renewing."""

    async def main() -> None:
        stores = [
            RedisQuotas(redis.url, entropy, timeout_s=timeout_s, lease_s=LEASE_S, retry_s=retry_s) for _ in range(2)
        ]
        await stores[0]._client.flushall()
        for store in stores:
            store.start()
        try:
            await test(*stores)
        finally:
            for store in stores:
                await store.aclose()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


async def until(works: Callable[[], Coroutine[Any, Any, object]]) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await works()
            except (RateLimited, QuotaUnavailable):
                await asyncio.sleep(0.02)
            else:
                return


@process
def test_a_slot_is_renewed_while_its_request_runs(redis: RedisServer) -> None:
    async def test(one: RedisQuotas, other: RedisQuotas) -> None:
        slot = await one.claim_slot("k", ONE)
        ends_at = await other._client.zscore(PREFIX + "slots:k", slot.name)
        async with asyncio.timeout(30):
            while await other._client.zscore(PREFIX + "slots:k", slot.name) < ends_at + 2000 * LEASE_S:
                await asyncio.sleep(0.02)
        with pytest.raises(RateLimited):
            await other.claim_slot("k", ONE)
        await one.release_slot(slot)
        await other.claim_slot("k", ONE)

    with_stores(redis, test)


@process
def test_the_slots_of_a_server_that_died_come_back(redis: RedisServer) -> None:
    async def test(one: RedisQuotas, other: RedisQuotas) -> None:
        await one.claim_slot("k", ONE)
        assert one._renewal is not None
        one._renewal.cancel()  # what a SIGKILL leaves: a lease that nobody renews
        await until(lambda: other.claim_slot("k", ONE))

    with_stores(redis, test)


@process
def test_a_redis_that_lost_its_data_is_told_of_slots_again(redis: RedisServer) -> None:
    async def test(one: RedisQuotas, other: RedisQuotas) -> None:
        await one.claim_slot("k", ONE)
        await other._client.flushall()
        async with asyncio.timeout(30):
            while not await other._client.zcard(PREFIX + "slots:k"):
                await asyncio.sleep(0.02)
        with pytest.raises(RateLimited):
            await other.claim_slot("k", ONE)

    with_stores(redis, test)


@process
def test_a_redis_that_goes_is_left_alone_for_a_while_and_used_when_it_is_back() -> None:
    with RedisServer() as redis:

        async def test(one: RedisQuotas, _other: RedisQuotas) -> None:
            loop = asyncio.get_running_loop()
            taken = await one.reserve("k", RATES, 10)
            await asyncio.to_thread(redis.stop)
            with pytest.raises(QuotaUnavailable):
                await one.reserve("k", RATES, 10)
            num_unanswered = one.statistics().num_unanswered
            one._patience._asks_at = loop.time() + 1000
            for _ in range(100):
                with pytest.raises(QuotaUnavailable, match="a moment ago"):
                    await one.claim_slot("k", ONE)
            await one.settle(taken, 5)
            assert one.statistics().num_unanswered == num_unanswered + 101
            await asyncio.to_thread(redis.start)
            one._patience._asks_at = loop.time()
            await until(lambda: one.reserve("k", RATES, 10))
            await one.settle(taken, 5)

        with_stores(redis, test, retry_s=0.01)


@process
def test_a_redis_that_hangs_costs_no_more_than_the_timeout() -> None:
    async def main() -> None:
        async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(hang, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        store = RedisQuotas(f"redis://127.0.0.1:{port}/0", entropy, timeout_s=0.05, retry_s=60)
        async with asyncio.timeout(30):
            with pytest.raises(QuotaUnavailable):
                await store.reserve("k", RATES, 1)
            with pytest.raises(QuotaUnavailable, match="a moment ago"):
                await store.claim_slot("k", ONE)
            await store.aclose()
        server.close()

    asyncio.run(main())


@process
def test_nothing_stays_in_redis_longer_than_it_means_something(redis: RedisServer) -> None:
    async def test(one: RedisQuotas, other: RedisQuotas) -> None:
        slot = await one.claim_slot("k", ONE)
        await one.reserve("k", RATES, 250)
        await one.reserve("deep", Quotas(tokens_per_minute=1), 10**9)
        keys = [key.decode() for key in await other._client.keys("*")]
        assert sorted(keys) == sorted(PREFIX + name for name in ("rate:k", "rate:deep", "slots:k"))
        life_ms = {key.removeprefix(PREFIX): await other._client.pttl(key) for key in keys}
        assert 0 < life_ms["slots:k"] <= 2000 * LEASE_S
        assert 0 < life_ms["rate:k"] <= 5 * 60_000
        assert 0 < life_ms["rate:deep"] <= MAX_LIFE_MS
        await one.release_slot(slot)
        assert not await other._client.exists(PREFIX + "slots:k")

    with_stores(redis, test)


@process
def test_what_each_question_costs_redis(redis: RedisServer) -> None:
    """The numbers that docs/many_servers.md names."""

    async def test(one: RedisQuotas, other: RedisQuotas) -> None:
        async def commands(works: Callable[[], Coroutine[Any, Any, object]]) -> int:
            before = (await other._client.info("commandstats")).get("cmdstat_evalsha", {}).get("calls", 0)
            await works()
            after = (await other._client.info("commandstats"))["cmdstat_evalsha"]["calls"]
            return int(after - before)

        for store in (one, other):
            assert store._renewal is not None
            store._renewal.cancel()
        for name in ("reserve", "settle", "claim", "release", "renew"):
            await one._client.script_load(one._scripts[name].script)

        async def whole() -> None:
            slot = await one.claim_slot("k", Quotas(1, 5, 100))
            taken = await one.reserve("k", RATES, 10)
            await one.settle(taken, 3)
            await one.release_slot(slot)

        async def only_requests() -> None:
            taken = await one.reserve("r", Quotas(requests_per_minute=5), 10)
            await one.settle(taken, 3)

        assert await commands(whole) == 4
        assert await commands(only_requests) == 1

    with_stores(redis, test, retry_s=60)


@pytest.mark.parametrize("url", ["", "http://127.0.0.1", "127.0.0.1:6379"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(QuotaBroken, match=r"quotas\.redis_url"):
        RedisQuotas(url, entropy, timeout_s=1)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def fail(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("redis"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "redis.asyncio", raising=False)
    monkeypatch.setattr(builtins, "__import__", fail)
    with pytest.raises(QuotaBroken, match=r"pip install 'tidegate\[redis\]'"):
        RedisQuotas("redis://127.0.0.1", entropy, timeout_s=1)
