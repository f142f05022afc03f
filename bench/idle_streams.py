"""Memory of idle streams: 5,000 open event streams that say nothing, in one server process.

Bound: under 40 KiB each. An idle stream is one whose engine waits: it is opened, has its status and its opening chunk,
and gets heartbeats only. Usage: python bench/idle_streams.py [--streams 5000]
"""

import argparse
import contextlib
import resource
import socket
import time

from server_process import serving
from stream_cost import CHAT
from stream_reader import http_request, open_streams

SETTLE_S = 3.0


def idle_request() -> bytes:
    """One token at once, the next one long after the benchmark."""
    script = {"pieces": ["61", "62"], "delays_s": [0, 3600]}
    body = {"model": "scripted", "messages": [{"role": "user", "content": "go"}], "stream": True, "x_script": script}
    return http_request(CHAT, body)


def count_open(sockets: list[socket.socket]) -> int:
    """Waits until every socket has the head of a stream, at most a minute; returns how many have."""
    num_open = 0
    deadline = time.perf_counter() + 60.0
    for sock in sockets:
        sock.settimeout(max(0.01, deadline - time.perf_counter()))
        with contextlib.suppress(TimeoutError):
            num_open += sock.recv(1 << 16).startswith(b"HTTP/1.1 200")
    return num_open


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=5000)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, options.streams * 2 + 1000), hard))
    environment = {
        "TIDEGATE_SERVER__STATUS_HOLD_S": "0.5",
        "TIDEGATE_SERVER__DRAIN_TIMEOUT_S": "0",
        "TIDEGATE_ADMISSION__QUEUE_DEPTH": str(options.streams + 100),
    }
    with serving("--engine", "scripted", "--max-sequences", "256", **environment) as server:
        warm = open_streams(server.port, [idle_request()] * 50)
        time.sleep(SETTLE_S)
        before = server.rss_bytes()
        sockets = open_streams(server.port, [idle_request()] * options.streams)
        alive = count_open(sockets)
        time.sleep(SETTLE_S)
        each = (server.rss_bytes() - before) / options.streams / 1024
        cpu = server.cpu_s()
        time.sleep(5.0)
        print(f"{alive} of {options.streams} streams open; {each:.1f} KiB each")
        print(f"CPU of the idle server: {(server.cpu_s() - cpu) / 5.0 * 100:.1f} % of a core")
        print("bound 40 KiB:", "held" if each < 40 and alive == options.streams else "MISSED")
        for sock in [*warm, *sockets]:
            sock.close()


if __name__ == "__main__":
    main()
