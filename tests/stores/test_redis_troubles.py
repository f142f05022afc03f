"""A Redis that stops taking writes under a running server: full, demoted, another password. Both stores say so at once,
count it, and use it again when it is mended."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from redis.asyncio import Redis

from harness.redis_server import RedisServer
from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.lifecycle.ledger_port import Fresh, LedgerUnavailable, Replay
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.quota_port import QuotaUnavailable
from tidegate.stores.redis_ledger import ANSWER_TIMEOUT_S, RedisLedger
from tidegate.stores.redis_quotas import RedisQuotas
from tidegate.system import entropy
from tidegate.testing.check_ledger import ANSWER, BODY, claim_fresh, name

pytestmark = pytest.mark.process

RATES = Quotas(concurrency=2, requests_per_minute=50, tokens_per_minute=1000)
Act = Callable[[Any], Awaitable[object]]


async def log_in_anew(admin: Any) -> None:
    """Another password, and nobody stays who knew the old one."""
    await admin.config_set("requirepass", "another")
    await admin.client_kill_filter(_type="normal", skipme=True)


TROUBLES: dict[str, tuple[Act, Act, str]] = {
    "full": (
        lambda admin: admin.config_set("maxmemory", 1),
        lambda admin: admin.config_set("maxmemory", 0),
        "maxmemory|OOM|memory",
    ),
    "a replica": (
        lambda admin: admin.execute_command("REPLICAOF", "127.0.0.1", "1"),
        lambda admin: admin.execute_command("REPLICAOF", "NO", "ONE"),
        "read only|READONLY|replica",
    ),
    "another password": (log_in_anew, lambda admin: admin.config_set("requirepass", ""), "[Aa]uth"),
}


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.mark.parametrize(("breaks", "mends", "words"), TROUBLES.values(), ids=TROUBLES)
def test_quotas_are_unanswered_and_come_back(redis: RedisServer, breaks: Act, mends: Act, words: str) -> None:
    async def main() -> None:
        admin = Redis.from_url(redis.url)
        store = RedisQuotas(redis.url, entropy, timeout_s=10, retry_s=0.01)
        try:
            taken = await store.reserve("k", RATES, 10)
            await breaks(admin)
            with pytest.raises(QuotaUnavailable, match=words):
                await store.reserve("k", RATES, 10)
            num_unanswered = store.statistics().num_unanswered
            assert num_unanswered >= 1
            await store.settle(taken, 5)  # in vain, and no fault
            await mends(admin)
            async with asyncio.timeout(30):
                while True:
                    try:
                        await store.claim_slot("k", RATES)
                        break
                    except QuotaUnavailable:
                        await asyncio.sleep(0.02)
        finally:
            await store.aclose()
            await admin.aclose()

    asyncio.run(main())


@pytest.mark.parametrize(("breaks", "mends", "words"), TROUBLES.values(), ids=TROUBLES)
def test_the_ledger_is_unavailable_and_comes_back(redis: RedisServer, breaks: Act, mends: Act, words: str) -> None:
    async def main() -> None:
        admin = Redis.from_url(redis.url)
        ledger = RedisLedger(redis.url, LedgerLimits(), entropy)
        try:
            runs, ends = await claim_fresh(ledger, "runs"), await claim_fresh(ledger, "ends")
            await breaks(admin)
            with pytest.raises(LedgerUnavailable, match=words):
                await ledger.claim(name("new"), BODY)
            with pytest.raises(LedgerUnavailable, match=words):
                await ledger.record(ends, ANSWER)
            await mends(admin)
            assert type(await ledger.claim(name("new"), BODY)) is Fresh
            assert await ledger.record(runs, ANSWER)
            assert await ledger.claim(name("runs"), BODY) == Replay(ANSWER)
        finally:
            await ledger.aclose()
            await admin.aclose()

    asyncio.run(main())


def drip(listener: socket.socket) -> None:
    """Begins an answer, and never comes to its end, until the client hangs up."""
    client, _ = listener.accept()
    with client, contextlib.suppress(OSError):
        client.settimeout(ANSWER_TIMEOUT_S / 10)
        client.sendall(b"+")
        while True:
            client.sendall(b".")
            with contextlib.suppress(TimeoutError):
                if not client.recv(4096):
                    return


def test_a_redis_that_never_comes_to_the_end_of_its_answer_costs_the_ledger_no_more_than_its_time() -> None:
    async def main(port: int) -> None:
        ledger = RedisLedger(f"redis://127.0.0.1:{port}/0", LedgerLimits(), entropy)
        async with asyncio.timeout(60):
            with pytest.raises(LedgerUnavailable, match="Redis: TimeoutError"):
                await ledger.claim(name("a"), BODY)
        await ledger.aclose()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,), name="slow Redis")
        thread.start()
        asyncio.run(main(listener.getsockname()[1]))
        thread.join(30)
