"""Server CPU for one streamed token, 64 streams, engine paced: ours against a bare ASGI send of the same bytes.

Bound: at most 2 x the bare send. Both run on the same HTTP server, alternating in one run; the number is CPU time of
the server process (all threads), so that another load on the machine moves it less than wall time.
Usage: python bench/stream_cost.py [--streams 64] [--tokens 400] [--step-ms 5] [--rounds 3] [--profile FILE]
"""

import argparse
import statistics

from server_process import bare_asgi, serving
from stream_reader import http_request, open_streams, read_streams

CHAT = "/v1/chat/completions"


def scripted_request(num_tokens: int, step_s: float) -> bytes:
    script = {"pieces": ["776f726420"], "repeat": num_tokens, "delays_s": [step_s]}
    body = {"model": "scripted", "messages": [{"role": "user", "content": "go"}], "stream": True, "x_script": script}
    return http_request(CHAT, body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--step-ms", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    step_s = options.step_ms / 1000
    num_tokens = options.streams * options.tokens
    ours, bare = [], []
    arguments = ("--engine", "scripted", "--max-sequences", str(min(256, options.streams)))
    with serving(*arguments) as server, bare_asgi(options.tokens, step_s) as (process, port):
        read_streams(open_streams(server.port, [scripted_request(20, step_s)] * options.streams))
        for _ in range(options.rounds):
            before = server.cpu_s()
            request = scripted_request(options.tokens, step_s)
            totals = read_streams(open_streams(server.port, [request] * options.streams))
            ours.append((server.cpu_s() - before) / num_tokens * 1e6)
            print(f"tidegate  {ours[-1]:6.1f} us/token  frames {totals.num_frames}  wall {totals.wall_s:.1f} s")
            times = process.cpu_times()
            before = times.user + times.system
            totals = read_streams(open_streams(port, [http_request("/", {})] * options.streams))
            times = process.cpu_times()
            bare.append((times.user + times.system - before) / num_tokens * 1e6)
            print(f"bare ASGI {bare[-1]:6.1f} us/token  frames {totals.num_frames}  wall {totals.wall_s:.1f} s")
    ratio = statistics.median(ours) / statistics.median(bare)
    print(f"median: {statistics.median(ours):.1f} us against {statistics.median(bare):.1f} us: ratio {ratio:.2f}")
    print("bound 2.00:", "held" if ratio <= 2 else "MISSED")


if __name__ == "__main__":
    main()
