"""What an idempotency key costs: time of claim and record, time without a key, memory and disk for many keys.

Times are CPU time of the process, all threads, so that another load moves them less; wall time stands behind.

Usage: python bench/ledger.py [--keys 100000] [--answer-bytes 2000] [--rounds 2000] [--only memory] [--redis-url URL]
Bound of `memory`: at most 8 MiB more after all keys than after the first 2,000.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil

from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.lifecycle.ledger_port import Fresh, Ledger
from tidegate.lifecycle.ledger_rules import LedgerRules
from tidegate.lifecycle.principal import Principal
from tidegate.observability.observer import NullObserver
from tidegate.serving.answer_recorder import AnswerRecorder
from tidegate.serving.call import Call
from tidegate.serving.idempotent_service import IdempotentService
from tidegate.serving.reply import Reply, WholeReply
from tidegate.stores.ledger_file import LedgerFile
from tidegate.stores.redis_ledger import RedisLedger
from tidegate.stores.sqlite_ledger import SqliteLedger
from tidegate.system import SystemClock, entropy

WARM_KEYS = 2000
BOUND_BYTES = 8 * 1024 * 1024
BODY = b'{"model":"m","messages":[{"role":"user","content":"Name three colours."}],"temperature":0.5}'
MIB = 1024 * 1024


class Nothing:
    """A service that takes no time."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def chat(self, _call: Call) -> Reply:
        return WholeReply(self._body)

    completion = tokenize = detokenize = chat

    def models(self) -> WholeReply:
        return WholeReply(b"")

    def model(self, model_id: str) -> WholeReply:
        return WholeReply(model_id.encode())

    def contract(self, principal: Principal) -> WholeReply:
        return WholeReply(principal.key_id.encode())

    def is_ready(self) -> bool:
        return True


async def time_each(act: Callable[[int], Awaitable[object]], num_rounds: int, at_once: int = 1) -> tuple[float, float]:
    """Returns microseconds of CPU and of wall time for each act, `at_once` of them at a time."""
    cpu, wall = time.process_time(), time.perf_counter()
    if at_once == 1:
        for i in range(num_rounds):
            await act(i)
    else:
        for first in range(0, num_rounds, at_once):
            await asyncio.gather(*(act(first + i) for i in range(at_once)))
    return (time.process_time() - cpu) / num_rounds * 1e6, (time.perf_counter() - wall) / num_rounds * 1e6


def show(what: str, times: tuple[float, float]) -> None:
    print(f"  {what:30} {times[0]:8.2f}   (wall {times[1]:.2f})")


async def measure_times(ledger: Ledger, options: argparse.Namespace, name: str) -> None:
    """Prints what a request costs beside its work."""
    inner = Nothing(os.urandom(options.answer_bytes))
    rules = LedgerRules("sqlite", 86_400, 10**6, 1 << 30, 1 << 24)
    service = IdempotentService(
        inner, AnswerRecorder(ledger, NullObserver(), 1 << 24), rules, NullObserver(), SystemClock()
    )
    run = entropy(8).hex()

    def call(i: int | None) -> Call:
        headers = {} if i is None else {"idempotency-key": f"{run}-{i}"}
        return Call("/v1/chat/completions", "w", 0.0, BODY, headers)

    async def with_key(i: int) -> None:
        await service.chat(call(i))

    keyless = call(None)
    num_rounds = options.rounds
    print(f"{name}, answers of {options.answer_bytes} bytes, microseconds a request:")
    show("new keys, one after another", await time_each(with_key, num_rounds))
    show("the same keys again (replays)", await time_each(with_key, num_rounds))
    run = entropy(8).hex()
    show("new keys, 32 at a time", await time_each(with_key, num_rounds, 32))
    bare = min([await time_each(lambda _: inner.chat(keyless), 100_000) for _ in range(3)])
    wrapped = min([await time_each(lambda _: service.chat(keyless), 100_000) for _ in range(3)])
    show("without a key, more than bare", (wrapped[0] - bare[0], wrapped[1] - bare[1]))


def measure_memory(folder: Path, options: argparse.Namespace) -> bool:
    """Prints what many keys leave in memory and on disk; says whether the bound held."""
    file = LedgerFile(folder / "many.sqlite3", LedgerLimits(max_entries=10**9), time.time, "memory")
    process = psutil.Process()
    warm = 0
    start = time.perf_counter()
    for i in range(options.keys):
        if i == WARM_KEYS:
            warm = process.memory_info().rss
        found = file.claim(entropy(32), b"f" * 32)
        assert isinstance(found, Fresh)
        file.record(found.claim, entropy(options.answer_bytes))
    grown = process.memory_info().rss - warm
    each_us = (time.perf_counter() - start) / options.keys * 1e6
    on_disk = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{options.keys} keys: {each_us:.0f} us each, {on_disk / MIB:.1f} MiB on disk")
    print(f"memory grown by {grown} bytes since key {WARM_KEYS}: {'held' if grown <= BOUND_BYTES else 'MISSED'}")
    file.close()
    return grown <= BOUND_BYTES


async def measure_stores(folder: Path, options: argparse.Namespace) -> None:
    limits = LedgerLimits(max_entries=10**6)
    ledgers: dict[str, SqliteLedger | RedisLedger] = {
        "SQLite": SqliteLedger(LedgerFile(folder / "times.sqlite3", limits, time.time, "times"))
    }
    if options.redis_url:
        ledgers["Redis"] = RedisLedger(options.redis_url, limits, entropy)
    for name, ledger in ledgers.items():
        ledger.start()
        await measure_times(ledger, options, name)
        await ledger.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--answer-bytes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--redis-url")
    parser.add_argument("--only", choices=["memory"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.only is None:
            asyncio.run(measure_stores(Path(folder), options))
        if not measure_memory(Path(folder), options):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
