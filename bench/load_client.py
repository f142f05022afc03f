"""What `tidegate bench` itself costs for a piece of text, and how many streams it can follow.

A bare ASGI server (`bare_stream.py`) sends prebuilt chunks as fast as it is told; measured is the CPU time of the
client, which reads, times and decodes each. With --httpx the same through httpx, to compare.

python bench/load_client.py [--streams 64] [--tokens 400] [--step-ms 5] [--rounds 3] [--httpx]
"""

import argparse
import asyncio
import statistics
import time

import uvloop

from server_process import bare_asgi
from tidegate.loadtest.answer_reader import AnswerReader
from tidegate.loadtest.http_client import HttpClient
from tidegate.system import SystemClock

REQUEST = b"POST / HTTP/1.1\r\nHost: bench\r\nContent-Length: 2\r\n\r\n{}"


async def read_ours(port: int, num_streams: int) -> int:
    """Returns how many pieces came."""
    async with HttpClient(("http", "127.0.0.1", port), SystemClock()) as client:

        async def one() -> int:
            reader = AnswerReader()
            await client.exchange(REQUEST, reader.feed, 600.0)
            return len(reader.token_at)

        return sum(await asyncio.gather(*(one() for _ in range(num_streams))))


async def read_with_httpx(port: int, num_streams: int) -> int:
    """Returns how many pieces came."""
    import httpx

    async with httpx.AsyncClient(timeout=600, limits=httpx.Limits(max_connections=num_streams)) as client:

        async def one() -> int:
            reader = AnswerReader()
            async with client.stream("POST", f"http://127.0.0.1:{port}/", content=b"{}") as response:
                async for data in response.aiter_raw():
                    reader.feed(data, time.monotonic())
            return len(reader.token_at)

        return sum(await asyncio.gather(*(one() for _ in range(num_streams))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--step-ms", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--httpx", action="store_true")
    options = parser.parse_args()
    readers = {"tidegate bench": read_ours} | ({"httpx": read_with_httpx} if options.httpx else {})
    costs: dict[str, list[float]] = {name: [] for name in readers}
    with bare_asgi(options.tokens, options.step_ms / 1000) as (_, port):
        for _ in range(options.rounds):
            for name, read in readers.items():
                cpu, wall = time.process_time(), time.perf_counter()
                num_pieces = uvloop.run(read(port, options.streams))
                cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
                costs[name].append(cpu / num_pieces * 1e6)
                print(f"{name}: {num_pieces / wall:,.0f} pieces/s, {cpu / wall:.0%} of a processor")
    for name, found in costs.items():
        print(f"{name}: {statistics.median(found):.1f} us CPU a piece, median of {options.rounds} rounds")


if __name__ == "__main__":
    main()
