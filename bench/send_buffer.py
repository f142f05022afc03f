"""Whether a bounded send buffer slows a healthy fast stream: the same long stream with several SO_SNDBUF values.

    PYTHONPATH=src:tests python bench/send_buffer.py

The runs take turns, so that the machine's other work hits all of them alike. Printed is the median rate of each.
"""

import statistics
import time
from contextlib import ExitStack

from harness.event_stream import read_stream
from harness.faults import Route, ask, hex_pieces
from harness.raw_http import request
from harness.server_thread import ServerThread

SIZES = (None, 65_536, 131_072, 262_144)
NUM_ROUNDS = 7
SCRIPT = {"pieces": hex_pieces(*("0123456789" * 12,) * 25), "repeat": 400, "finish": "eos"}
BODY = ask(Route.CHAT, SCRIPT, stream=True)


def main() -> None:
    rates: dict[int | None, list[float]] = {size: [] for size in SIZES}
    with ExitStack() as stack:
        servers = {
            size: stack.enter_context(
                ServerThread("scripted", **({} if size is None else {"server__send_buffer_bytes": size}))
            )
            for size in SIZES
        }
        for _ in range(NUM_ROUNDS):
            for size, server in servers.items():
                begin = time.perf_counter()
                answer = request(server.port, "POST", Route.CHAT.value, BODY)
                elapsed_s = time.perf_counter() - begin
                assert read_stream(answer.body).is_done_last
                rates[size].append(len(answer.body) / elapsed_s / 1e6)
    for size, values in rates.items():
        print(f"SO_SNDBUF {'system' if size is None else size:>8}: {statistics.median(values):6.1f} MB/s")


if __name__ == "__main__":
    main()
