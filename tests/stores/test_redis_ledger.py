"""The ledger in a real Redis: leases, processes that die, a Redis that goes away and comes back empty."""

import asyncio
import builtins
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import pytest

from harness.redis_server import RedisServer
from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.lifecycle.ledger_port import Fresh, InFlight, LedgerBroken, LedgerUnavailable, Replay
from tidegate.stores.redis_ledger import RedisLedger
from tidegate.stores.redis_scripts import PREFIX
from tidegate.system import entropy
from tidegate.testing.check_ledger import ANSWER, BODY, claim_fresh, name, record

LIMITS = LedgerLimits(retention_s=100)
LEASE_S = 0.8
process = pytest.mark.process


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


def with_ledgers(redis: RedisServer, test: Callable[[RedisLedger, RedisLedger], Coroutine[Any, Any, None]]) -> None:
    """Runs a test with two server processes' ledgers, both renewing."""

    async def main() -> None:
        ledgers = [RedisLedger(redis.url, LIMITS, entropy, lease_s=LEASE_S) for _ in range(2)]
        await ledgers[0]._client.flushall()
        for ledger in ledgers:
            ledger.start()
        try:
            await test(*ledgers)
        finally:
            for ledger in ledgers:
                await ledger.aclose()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


async def until_fresh(ledger: RedisLedger, operation: str) -> None:
    async with asyncio.timeout(30):
        while not isinstance(await ledger.claim(name(operation), BODY), Fresh):
            await asyncio.sleep(0.02)


@process
def test_a_lease_is_renewed_while_its_request_runs(redis: RedisServer) -> None:
    async def test(one: RedisLedger, other: RedisLedger) -> None:
        claim = await claim_fresh(one, "a")
        ends_at = await other._client.zscore(PREFIX + "pending", claim.operation.hex())
        async with asyncio.timeout(30):
            while await other._client.zscore(PREFIX + "pending", claim.operation.hex()) < ends_at + 2000 * LEASE_S:
                await asyncio.sleep(0.02)
        assert await other.claim(name("a"), BODY) == InFlight()
        assert await one.record(claim, ANSWER)
        assert await other.claim(name("a"), BODY) == Replay(ANSWER)

    with_ledgers(redis, test)


HOLDER = """
import asyncio, sys
from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.stores.redis_ledger import RedisLedger
from tidegate.system import entropy
async def hold():
    ledger = RedisLedger(sys.argv[1], LedgerLimits(), entropy, lease_s=float(sys.argv[2]))
    ledger.start()
    print(type(await ledger.claim(bytes.fromhex(sys.argv[3]), b"f" * 32)).__name__, flush=True)
    await asyncio.sleep(600)
asyncio.run(hold())
"""


@process
def test_sigkill_frees_a_key_when_its_lease_ends(redis: RedisServer) -> None:  # IDEM-4
    async def test(one: RedisLedger, other: RedisLedger) -> None:
        arguments = [redis.url, str(LEASE_S), name("killed").hex()]
        holder = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOLDER, *arguments, stdout=asyncio.subprocess.PIPE
        )
        assert holder.stdout is not None
        assert await holder.stdout.readline() == b"Fresh\n"
        assert type(await one.claim(name("killed"), b"f" * 32)) is InFlight
        holder.kill()
        await holder.communicate()
        await until_fresh(one, "killed")

    with_ledgers(redis, test)


@process
def test_a_lost_lease_is_not_recorded_over_the_new_owner(redis: RedisServer) -> None:
    async def test(one: RedisLedger, other: RedisLedger) -> None:
        lost = await claim_fresh(one, "a")
        await one._client.zadd(PREFIX + "pending", {lost.operation.hex(): 1})  # its process was stopped for too long
        again = await claim_fresh(other, "a")
        assert not await one.record(lost, b"late")
        assert await other.record(again, ANSWER)
        assert await one.claim(name("a"), BODY) == Replay(ANSWER)

    with_ledgers(redis, test)


@process
def test_a_redis_that_comes_back_empty_is_told_what_runs() -> None:
    with RedisServer() as own:

        async def test(one: RedisLedger, other: RedisLedger) -> None:
            claim = await claim_fresh(one, "runs")
            await record(one, "forgotten")
            await asyncio.to_thread(own.stop)
            with pytest.raises(LedgerUnavailable, match="Redis"):
                await other.claim(name("runs"), BODY)
            await asyncio.to_thread(own.start)
            async with asyncio.timeout(30):
                while await other._client.zcard(PREFIX + "pending") != 1:
                    await asyncio.sleep(0.02)
            assert await other.claim(name("runs"), BODY) == InFlight()
            assert await one.record(claim, ANSWER)
            assert await other.claim(name("runs"), BODY) == Replay(ANSWER)
            await claim_fresh(other, "forgotten")

        with_ledgers(own, test)


@process
def test_an_outage_is_said_once_whoever_meets_it_first_and_so_is_its_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RedisServer() as own:

        async def test(one: RedisLedger, other: RedisLedger) -> None:
            num_asked, run = 0, one._run

            async def counted(script: str, arguments: Sequence[Any]) -> list[Any]:
                nonlocal num_asked
                num_asked += 1
                return await run(script, arguments)

            monkeypatch.setattr(one, "_run", counted)
            assert other._renewal is not None
            other._renewal.cancel()
            await asyncio.to_thread(own.stop)
            with pytest.raises(LedgerUnavailable):
                await one.claim(name("a"), BODY)
            async with asyncio.timeout(30):
                while num_asked < 4:
                    await asyncio.sleep(0.02)
                await asyncio.to_thread(own.start)
                while one._is_down:
                    await asyncio.sleep(0.02)

        with_ledgers(own, test)
    said = [line for line in caplog.messages if line.startswith("the ledger of idempotency keys")]
    assert ["does not answer" in line for line in said] == [True, False]


@process
def test_a_claim_that_is_sent_twice_is_one_claim(redis: RedisServer) -> None:
    async def test(one: RedisLedger, other: RedisLedger) -> None:
        one._entropy = other._entropy = bytes  # both mint the same generation, as a repeated command would carry it
        first = await claim_fresh(one, "a")
        assert await claim_fresh(other, "a") == first
        assert await one.record(first, ANSWER)
        assert await other.record(first, ANSWER)
        assert (one.statistics().num_bytes, other.statistics().num_bytes) == (len(ANSWER), len(ANSWER))

    with_ledgers(redis, test)


@process
def test_nothing_stays_behind_for_ever(redis: RedisServer) -> None:  # IDEM-9
    async def test(one: RedisLedger, other: RedisLedger) -> None:
        await record(one, "a")
        await claim_fresh(one, "b")
        for key in await one._client.keys("*"):
            assert await one._client.pttl(key) > 0, key

    with_ledgers(redis, test)


@pytest.mark.parametrize("url", ["127.0.0.1:6379", "http://127.0.0.1", ""])
def test_what_is_no_url_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(LedgerBroken, match="redis_url"):
        RedisLedger(url, LIMITS, entropy)


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    true_import = builtins.__import__

    def without_redis(module: str, *args: Any, **kwargs: Any) -> Any:
        if module.startswith("redis"):
            raise ImportError(module)
        return true_import(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_redis)
    with pytest.raises(LedgerBroken, match=r"pip install 'tidegate\[redis\]'"):
        RedisLedger("redis://127.0.0.1", LIMITS, entropy)
