"""Goodput at five times capacity: what is done, how fast the rest is refused, and what memory does meanwhile.

Bounds: goodput at least 0.90 of that at capacity in the same run, refusals with p99 under 50 ms, memory flat. The
scripted engine paces itself, so capacity is known: rows over the time of one request. Arrivals are evenly spaced and do
not wait for answers. Rounds of both loads alternate; memory is that of the overloaded rounds after the first.
Usage: python bench/overload.py [--rounds 3] [--seconds 15] [--factor 5]
"""

import argparse
import asyncio
import json
import statistics
import time
from dataclasses import dataclass, field

from server_process import ServerProcess, serving
from stream_cost import CHAT
from stream_reader import http_request

NUM_ROWS = 8
TOKENS, STEP_S = 20, 0.02
CAPACITY = NUM_ROWS / (TOKENS * STEP_S)
"""Requests a second, if no row were ever idle."""


@dataclass(slots=True)
class Load:
    """What came of one round."""

    seconds: float
    num_served: int = 0
    num_other: int = 0
    refusals_s: list[float] = field(default_factory=list)
    health_s: list[float] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)

    @property
    def goodput(self) -> float:
        return self.num_served / self.seconds


def make_request() -> bytes:
    script = {"pieces": ["61"], "repeat": TOKENS, "delays_s": [STEP_S]}
    body = {"model": "scripted", "messages": [{"role": "user", "content": "go"}], "stream": True, "x_script": script}
    return http_request(CHAT, body)


async def ask(port: int, request: bytes, load: Load) -> None:
    """One request on a connection of its own; counts how it ended."""
    begin = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    if answer.startswith(b"HTTP/1.1 200") and b"data: [DONE]" in answer:
        load.num_served += 1
    elif answer.startswith(b"HTTP/1.1 429"):
        load.refusals_s.append(time.perf_counter() - begin)
    else:
        load.num_other += 1


async def watch(server: ServerProcess, load: Load) -> None:
    """Reads the server's memory, and how long `/health` takes, twice a second."""
    while True:
        begin = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
        load.health_s.append(time.perf_counter() - begin)
        load.memory.append((begin, server.rss_bytes()))
        await asyncio.sleep(0.5)


async def offer(server: ServerProcess, rate: float, seconds: float) -> Load:
    """Sends `rate` requests a second for so long, then waits for the last answers; those count, as their time does."""
    load, request = Load(seconds), make_request()
    watcher = asyncio.create_task(watch(server, load))
    begin = time.perf_counter()
    asked: list[asyncio.Task[None]] = []
    while (elapsed := time.perf_counter() - begin) < seconds:
        due = int(elapsed * rate) + 1
        asked += [asyncio.create_task(ask(server.port, request, load)) for _ in range(due - len(asked))]
        await asyncio.sleep(max(0.0, begin + due / rate - time.perf_counter()))
    await asyncio.gather(*asked)
    load.seconds = time.perf_counter() - begin
    watcher.cancel()
    return load


def slope_mib_per_minute(memory: list[tuple[float, int]]) -> float:
    """Returns the slope of a straight line through the readings."""
    slope, _ = statistics.linear_regression([at for at, _ in memory], [size for _, size in memory])
    return slope * 60 / 1024 / 1024


def p99_ms(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98] * 1e3 if len(values) > 1 else 0.0


def held_below(value: float, bound: float) -> str:
    return verdict(is_held=value < bound)


def verdict(*, is_held: bool) -> str:
    return "held" if is_held else "MISSED"


def report(server: ServerProcess, normal: list[Load], heavy: list[Load], factor: float) -> None:
    at_capacity = statistics.median(load.goodput for load in normal)
    overloaded = statistics.median(load.goodput for load in heavy)
    refusals = [seconds for load in heavy for seconds in load.refusals_s]
    health = [seconds for load in heavy for seconds in load.health_s]
    memory = [reading for load in heavy[1:] or heavy for reading in load.memory]
    print(f"capacity {CAPACITY:.0f} requests/s; goodput at 1 x {at_capacity:.1f}, at {factor:g} x {overloaded:.1f}")
    ratio, slope, size = overloaded / at_capacity, slope_mib_per_minute(memory), memory[-1][1] / 1024 / 1024
    print(f"  goodput x {ratio:.3f}; bound 0.90: {verdict(is_held=ratio >= 0.9)}")
    print(f"  {len(refusals)} refusals, p99 {p99_ms(refusals):.1f} ms; bound 50: {held_below(p99_ms(refusals), 50)}")
    print(f"  /health p99 {p99_ms(health):.1f} ms; bound 100: {held_below(p99_ms(health), 100)}")
    print(f"  memory {slope:+.2f} MiB a minute, {size:.0f} MiB at the end")
    print(f"  answers that were neither: {sum(load.num_other for load in [*normal, *heavy])}")
    print("  admission afterwards:", json.dumps(server.engine()["admission"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--factor", type=float, default=5.0)
    options = parser.parse_args()
    environment = {"TIDEGATE_ADMISSION__QUEUE_DEPTH": str(NUM_ROWS)}
    normal: list[Load] = []
    heavy: list[Load] = []
    with serving("--engine", "scripted", "--max-sequences", str(NUM_ROWS), **environment) as server:
        asyncio.run(offer(server, CAPACITY, 3.0))
        for _ in range(options.rounds):
            normal.append(asyncio.run(offer(server, CAPACITY, options.seconds)))
            heavy.append(asyncio.run(offer(server, CAPACITY * options.factor, options.seconds)))
        report(server, normal, heavy, options.factor)


if __name__ == "__main__":
    main()
