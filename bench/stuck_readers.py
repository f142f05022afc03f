"""What stuck readers cost healthy streams: the gap between tokens with 0, 1 and 100 clients that read nothing.

Bound: the p99 gap of healthy streams grows by at most 10 %. Stuck readers have a small receive buffer and ask for a
flood; the healthy streams begin when the engine holds every one of them. Rounds alternate, so that the machine's mood
falls on all of them alike.
Usage: python bench/stuck_readers.py [--healthy 16] [--tokens 200] [--step-ms 20] [--rounds 3] [--stuck 0,1,100]
"""

import argparse
import contextlib
import selectors
import socket
import statistics
import sys
import time
from collections.abc import Iterator

from server_process import ServerProcess, serving
from stream_cost import CHAT, scripted_request
from stream_reader import http_request, open_streams

BOUND = 1.10
BUFFER_BYTES = 4096
SETTINGS = {
    "TIDEGATE_SERVER__SEND_BUFFER_BYTES": str(BUFFER_BYTES),
    "TIDEGATE_SERVER__SLOW_CLIENT_TIMEOUT_S": "600",
    "TIDEGATE_SERVER__DRAIN_TIMEOUT_S": "1",
}


@contextlib.contextmanager
def stuck_readers(server: ServerProcess, count: int) -> Iterator[None]:
    """Keeps `count` connections open that asked for a flood and read nothing; begins when the engine holds them all."""
    sockets = []
    try:
        for _ in range(count):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            sock.connect(("127.0.0.1", server.port))
            sock.sendall(http_request(CHAT, flood()))
            sockets.append(sock)
        wait_held(server, count)
        yield
    finally:
        for sock in sockets:
            sock.close()
        wait_held(server, 0)


def wait_held(server: ServerProcess, count: int) -> None:
    for _ in range(600):
        gauges = server.engine()["gauges"]
        assert isinstance(gauges, dict)
        if (gauges["num_held"], gauges["num_running"]) == (count, 0):
            return
        time.sleep(0.1)
    raise TimeoutError(f"the engine does not hold {count} requests")


def flood() -> dict[str, object]:
    script = {"pieces": [("0123456789" * 100).encode().hex()], "repeat": 2000}
    messages = [{"role": "user", "content": "go"}]
    return {"model": "scripted", "messages": messages, "stream": True, "max_tokens": 5000, "x_script": script}


def read_gaps(sockets: list[socket.socket]) -> list[float]:
    """Reads streams to their ends; returns the seconds between one read with text and the next, of each stream."""
    selector = selectors.DefaultSelector()
    last: dict[socket.socket, float] = {}
    gaps: list[float] = []
    for sock in sockets:
        selector.register(sock, selectors.EVENT_READ)
    while selector.get_map():
        for key, _ in selector.select(60.0):
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            data, now = sock.recv(1 << 16), time.perf_counter()
            if b'"content":"word' in data:
                if sock in last:
                    gaps.append(now - last[sock])
                last[sock] = now
            if not data or b"[DONE]" in data:
                selector.unregister(sock)
                sock.close()
    return gaps


def p99_s(server: ServerProcess, num_stuck: int, options: argparse.Namespace) -> float:
    with stuck_readers(server, num_stuck):
        request = scripted_request(options.tokens, options.step_ms / 1000)
        gaps = sorted(read_gaps(open_streams(server.port, [request] * options.healthy)))
    return gaps[int(len(gaps) * 0.99)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--healthy", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--step-ms", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stuck", default="0,1,100")
    options = parser.parse_args()
    counts = [int(part) for part in options.stuck.split(",")]
    results: dict[int, list[float]] = {count: [] for count in counts}
    rows = options.healthy + max(counts) + 8
    with serving("--engine", "scripted", "--max-sequences", str(rows), **SETTINGS) as server:
        p99_s(server, 0, options)
        for _ in range(options.rounds):
            for count in counts:
                results[count].append(p99_s(server, count, options))
    base = statistics.median(results[counts[0]])
    is_held = True
    print(f"{'stuck readers':>14}{'p99 gap ms':>12}{'ratio':>8}   rounds")
    for count, values in results.items():
        ratio = statistics.median(values) / base
        is_held = is_held and ratio <= BOUND
        rounds = ", ".join(f"{value * 1e3:.1f}" for value in values)
        print(f"{count:14d}{statistics.median(values) * 1e3:12.2f}{ratio:8.3f}   {rounds}")
    print(f"bound {BOUND:.2f}:", "held" if is_held else "MISSED")
    return 0 if is_held else 1


if __name__ == "__main__":
    sys.exit(main())
