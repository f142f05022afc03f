"""Decode throughput through the whole server against a bare `llama_decode` loop at the same batch, alternating.

Bound: at least 0.95 x the bare loop at 1, 8 and 32 sequences. The server runs as its own process with its engine; the
clients are one thread of this one. Counted is the time in which every sequence decodes: from the last first token to
the first end. The bare loop is the one of `decode_throughput.py`, in this process, idle while the server is measured.

python bench/server_throughput.py [--rounds 5] [--tokens 64] [--batches 1,8,32] [--threads N]
"""

import argparse
import os
import selectors
import socket
import statistics
import time

from bundled_model import bundled_model
from decode_throughput import BareLoop
from server_process import ServerProcess, serving
from stream_reader import http_request, open_streams
from tidegate.sizing.llama_cpp_options import LlamaCppOptions

MODEL = "SmolLM2-135M-Instruct"
PROMPT_TOKENS = 64


def prompt_of(salt: int, i: int) -> list[int]:
    """Returns token ids that no other stream has."""
    return [1000 + (salt * 7919 + i * 104_729 + k * 31) % 30_000 for k in range(PROMPT_TOKENS)]


def server_rate(server: ServerProcess, batch: int, num_tokens: int, salt: int) -> float:
    """Returns tokens per second while all of `batch` streams decode."""
    requests = []
    for i in range(batch):
        body = {
            "model": MODEL,
            "prompt": prompt_of(salt, i),
            "max_tokens": num_tokens,
            "ignore_eos": True,
            "temperature": 0,
        }
        requests.append(http_request("/v1/completions", body | {"stream": True}))
    arrivals = read_arrivals(open_streams(server.port, requests))
    begin = max(times[0] for times in arrivals)
    end = min(times[-1] for times in arrivals)
    # A chunk is a token but for the few that are part of a character; each stream's number of tokens is known.
    tokens_per_chunk = batch * num_tokens / sum(len(times) for times in arrivals)
    count = sum(begin < at <= end for times in arrivals for at in times)
    return count * tokens_per_chunk / (end - begin)


def read_arrivals(sockets: list[socket.socket]) -> list[list[float]]:
    """Returns when each chunk of text of each stream came."""
    arrivals: dict[socket.socket, list[float]] = {sock: [] for sock in sockets}
    selector = selectors.DefaultSelector()
    for sock in sockets:
        selector.register(sock, selectors.EVENT_READ)
    while selector.get_map():
        for key, _ in selector.select(60.0):
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            data = sock.recv(1 << 16)
            arrivals[sock] += [time.perf_counter()] * data.count(b'"finish_reason":null')
            if not data or b"[DONE]" in data:
                selector.unregister(sock)
                sock.close()
    return list(arrivals.values())


def bare_rate(bare: BareLoop, batch: int, num_tokens: int, salt: int) -> float:
    """Returns tokens per second of the bare loop over the same number of tokens."""
    bare.start([prompt_of(salt, i) for i in range(batch)])
    start = time.perf_counter()
    count = sum(bare.step() for _ in range(num_tokens))
    rate = count / (time.perf_counter() - start)
    bare.stop()
    return rate


def measure(server: ServerProcess, bare: BareLoop, batch: int, num_tokens: int, salt: int) -> tuple[float, float]:
    """Returns both rates, server first; who is measured first changes with `salt`."""
    if salt % 2:
        ours = server_rate(server, batch, num_tokens, salt)
        return ours, bare_rate(bare, batch, num_tokens, salt)
    base = bare_rate(bare, batch, num_tokens, salt)
    return server_rate(server, batch, num_tokens, salt), base


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    flags = [] if options.threads is None else ["--threads", str(options.threads)]
    settings = LlamaCppOptions(
        model_path=bundled_model(), max_model_len=512, max_sequences=32, n_threads=options.threads
    )
    bare = BareLoop(settings)
    with serving("--max-model-len", "512", "--max-sequences", "32", *flags) as server:
        print(f"{os.cpu_count()} cores; median of {options.rounds} rounds, ratio of neighbours")
        for batch in (int(part) for part in options.batches.split(",")):
            pairs = [measure(server, bare, batch, options.tokens, salt) for salt in range(options.rounds + 1)][1:]
            ratio = statistics.median(ours / base for ours, base in pairs)
            ours, base = (statistics.median(column) for column in zip(*pairs, strict=True))
            print(f"batch {batch:3d}: server {ours:7.1f} tok/s, bare {base:7.1f} tok/s, ratio {ratio:.3f}")
    bare.close()


if __name__ == "__main__":
    main()
