"""The time to an answer of one token behind 500 tokens that are alike: read first, found again, found after its first
caller left half way, and not found under another salt.

Each round takes a beginning that nobody has read. Counts of tokens beside the times say why they differ; that they are
right is tested in tests/e2e/test_real_model_prefix.py.
Usage: python bench/prefix_time.py [--rounds 10] [--prefix 500] [--new 8] [--threads N]
"""

import argparse
import http.client
import json
import socket
import statistics
import time
from collections import defaultdict
from typing import Any

from bundled_model import bundled_model
from server_process import ServerProcess, serving
from stream_reader import http_request

PATH = "/v1/completions"


def body_of(prompt: list[int], **members: Any) -> dict[str, Any]:
    return {"model": "bundled", "prompt": prompt, "max_tokens": 1, "temperature": 0, **members}


def ask(server: ServerProcess, prompt: list[int], **members: Any) -> tuple[float, int]:
    """Returns the seconds to the whole answer, and how many tokens of the prompt were found."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    data = json.dumps(body_of(prompt, **members))
    start = time.perf_counter()
    connection.request("POST", PATH, data, {"Content-Type": "application/json"})
    told = json.loads(connection.getresponse().read())
    took_s = time.perf_counter() - start
    connection.close()
    assert "usage" in told, told
    return took_s, told["usage"]["prompt_tokens_details"]["cached_tokens"]


def ask_and_leave(server: ServerProcess, prompt: list[int], after_s: float) -> None:
    """Asks, leaves in the middle of the prefill, and waits until the engine has let go."""
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.sendall(http_request(PATH, body_of(prompt)))
        time.sleep(after_s)
    for _ in range(600):
        gauges = server.engine()["gauges"]
        assert isinstance(gauges, dict)
        if gauges["num_running"] + gauges["num_waiting"] == 0:
            return
        time.sleep(0.05)
    raise TimeoutError("the engine works on for a client that has left")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--prefix", type=int, default=500, help="tokens that are alike")
    parser.add_argument("--new", type=int, default=8, help="tokens of each prompt behind them")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    flags = ("--threads", str(options.threads), "--max-model-len", "2048", "--served-model-name", "bundled")
    found: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    with serving(str(bundled_model()), *flags) as server:
        for number in range(options.rounds):
            one, two = (
                [1000 + ((2 * number + side) * 7919 + i * 104_729) % 30_000 for i in range(options.prefix)]
                for side in (0, 1)
            )
            tails = [[40 + 10 * number + part] * options.new for part in range(4)]
            found["read for the first time"].append(ask(server, one + tails[0]))
            found["found again"].append(ask(server, one + tails[1]))
            found["under another salt"].append(ask(server, one + tails[2], cache_salt=f"salt-{number}"))
            ask_and_leave(server, two + tails[0], found["read for the first time"][-1][0] / 2)
            found["after its first caller left half way"].append(ask(server, two + tails[3]))
    cold_s = statistics.median(took_s for took_s, _ in found["read for the first time"])
    for name, rounds in found.items():
        took_s = statistics.median(took_s for took_s, _ in rounds)
        num_found = statistics.median(num_found for _, num_found in rounds)
        print(f"{name}: {took_s * 1000:.0f} ms, {took_s / cold_s:.2f} of the first; {num_found:g} tokens found")


if __name__ == "__main__":
    main()
