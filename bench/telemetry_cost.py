"""Server CPU with spans and without: for a streamed token, and for a short request. Both servers in one run, in turns.

CPU time of the server process, all threads, the exporter's included. The collector answers at once and keeps nothing.
Usage: python bench/telemetry_cost.py [--streams 64] [--tokens 400] [--requests 2000] [--step-ms 5] [--rounds 5]
"""

import argparse
import statistics
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from server_process import serving
from stream_reader import http_request, open_streams, read_streams

CHAT = "/v1/chat/completions"
WARM = 20


def scripted_request(num_tokens: int, step_s: float) -> bytes:
    script = {"pieces": ["776f726420"], "repeat": num_tokens, "delays_s": [step_s]}
    body = {"model": "scripted", "messages": [{"role": "user", "content": "go"}], "stream": True, "x_script": script}
    return http_request(CHAT, body)


class Collector(BaseHTTPRequestHandler):
    """Takes everything."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--step-ms", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    spans = {
        "TIDEGATE_TELEMETRY__EXPORTER": "otlp",
        "TIDEGATE_TELEMETRY__ENDPOINT": f"http://127.0.0.1:{collector.server_address[1]}",
    }
    arguments = ("--engine", "scripted", "--max-sequences", str(min(256, options.streams)))
    found: dict[str, dict[str, list[float]]] = {"token": {}, "request": {}}
    with serving(*arguments) as off, serving(*arguments, **spans) as on:
        servers = {"without": off, "with": on}
        step_s = options.step_ms / 1000
        for server in servers.values():
            read_streams(open_streams(server.port, [scripted_request(WARM, step_s)] * options.streams))
        for _ in range(options.rounds):
            for name, server in servers.items():
                before = server.cpu_s()
                request = scripted_request(options.tokens, step_s)
                read_streams(open_streams(server.port, [request] * options.streams))
                cost = (server.cpu_s() - before) / (options.streams * options.tokens)
                found["token"].setdefault(name, []).append(cost * 1e6)
                before = server.cpu_s()
                for _ in range(options.requests // options.streams):
                    read_streams(open_streams(server.port, [scripted_request(1, 0.0)] * options.streams))
                cost = (server.cpu_s() - before) / (options.requests // options.streams * options.streams)
                found["request"].setdefault(name, []).append(cost * 1e6)
    for unit, costs in found.items():
        for name, values in costs.items():
            shown = " ".join(f"{value:.0f}" for value in values)
            print(f"{name:8} spans: median {statistics.median(values):7.1f} us/{unit}   ({shown})")
        added = statistics.median(costs["with"]) - statistics.median(costs["without"])
        print(f"added by spans: {added:.1f} us/{unit}")


if __name__ == "__main__":
    main()
