"""Server CPU per streamed token as streams and histories grow.

Bound: flat within 15 % from 8 to 512 streams, and from 10 to 4,000 tokens of history. Every stream has the same number
of tokens, so that the fixed cost of a request is the same share everywhere; sizes alternate over the rounds.
Usage: python bench/growth.py [--rounds 3]
"""

import argparse
import statistics
import threading

from server_process import ServerProcess, serving
from stream_cost import CHAT, scripted_request
from stream_reader import http_request, open_streams, read_streams

STEP_S = 0.005
TOKENS_PER_STREAM = 400
PAUSE_S = 8.0
"""Between the history and the tokens that are measured: everything about the history has been done by then."""


def stream_cost(server: ServerProcess, num_streams: int, num_runs: int) -> float:
    """Returns microseconds of server CPU for one token, every stream as long as every other."""
    before = server.cpu_s()
    for _ in range(num_runs):
        read_streams(open_streams(server.port, [scripted_request(TOKENS_PER_STREAM, STEP_S)] * num_streams))
    return (server.cpu_s() - before) / (num_streams * num_runs * TOKENS_PER_STREAM) * 1e6


def history_cost(server: ServerProcess, num_history: int) -> float:
    """Returns microseconds of server CPU for one token after `num_history` tokens, on 64 streams."""
    requests = [history_request(num_history)] * 64
    sockets = open_streams(server.port, requests)
    before = [0.0]

    def note() -> None:
        before[0] = server.cpu_s()

    timer = threading.Timer(PAUSE_S * 0.75, note)
    timer.start()
    read_streams(sockets)
    timer.join()
    return (server.cpu_s() - before[0]) / (64 * TOKENS_PER_STREAM) * 1e6


def history_request(num_history: int) -> bytes:
    """A stream that gets `num_history` tokens at once, and after a pause the tokens that are measured."""
    script = {
        "pieces": ["776f726420"],
        "repeat": num_history + TOKENS_PER_STREAM,
        "delays_s": [0.0] * num_history + [PAUSE_S] + [STEP_S] * (TOKENS_PER_STREAM - 1),
        "step_tokens": [num_history],
    }
    body = {"model": "scripted", "messages": [{"role": "user", "content": "go"}], "stream": True, "x_script": script}
    return http_request(CHAT, body)


def report(title: str, results: dict[int, list[float]]) -> None:
    base = statistics.median(next(iter(results.values())))
    print(title)
    for size, values in results.items():
        median = statistics.median(values)
        print(f"  {size:6d}  {median:6.1f} us/token  x {median / base:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    by_streams: dict[int, list[float]] = {8: [], 64: [], 256: [], 512: []}
    by_history: dict[int, list[float]] = {10: [], 1000: [], 4000: []}
    with serving("--engine", "scripted", "--max-sequences", "512") as server:
        read_streams(open_streams(server.port, [scripted_request(20, STEP_S)] * 8))
        for _ in range(options.rounds):
            for num_streams, values in by_streams.items():
                values.append(stream_cost(server, num_streams, max(1, 64 // num_streams)))
            for num_history, values in by_history.items():
                values.append(history_cost(server, num_history))
    report("streams", by_streams)
    report("tokens of history, 64 streams", by_history)


if __name__ == "__main__":
    main()
