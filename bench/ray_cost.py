"""What a token costs through Ray, against an engine of this machine, in one run: CPU of the server and of what stands
behind it, and the time that is added.

Both servers run the scripted engine, paced; rounds alternate. CPU is that of processes: the server, the engine's own
process, and of Ray the actor, the raylet and the head. Latency is the time to the whole answer of one token, one
request after the other, and the share of the ideal rate that all streams together reach.
Usage: python bench/ray_cost.py [--streams 64] [--tokens 200] [--step-ms 20] [--rounds 3] [--requests 100]
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping

import psutil

from server_process import ServerProcess, serving
from stream_cost import scripted_request
from stream_reader import open_streams, read_streams

PARTS = (("EngineActor", "actor"), ("tidegate.engine_process", "engine"), ("raylet", "ray"), ("gcs_server", "ray"))
ORDER = ("server", "engine", "actor", "ray", "other")


def cpu_by_part(server: ServerProcess) -> dict[str, float]:
    """Returns CPU seconds so far of the server and of everything that it started, by what it is."""
    used: defaultdict[str, float] = defaultdict(float)
    used["server"] = server.cpu_s()
    for child in server.process.children(recursive=True):
        try:
            name = " ".join([child.name(), *child.cmdline()])
            times = child.cpu_times()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        part = next((part for mark, part in PARTS if mark in name), "other")
        used[part] += times.user + times.system
    return used


def spend(server: ServerProcess, options: argparse.Namespace) -> tuple[dict[str, float], float]:
    """Returns microseconds of CPU a token by part, and the share of the ideal rate, of one round of streams."""
    step_s = options.step_ms / 1000
    before = cpu_by_part(server)
    request = scripted_request(options.tokens, step_s)
    totals = read_streams(open_streams(server.port, [request] * options.streams))
    after = cpu_by_part(server)
    num_tokens = options.streams * options.tokens
    return (
        {part: (after[part] - before.get(part, 0.0)) / num_tokens * 1e6 for part in after},
        options.tokens * step_s / totals.wall_s,
    )


def answer_ms(server: ServerProcess, num_requests: int) -> list[float]:
    """Returns the milliseconds to whole answers of one token, sorted."""
    request = scripted_request(1, 0.0)
    found = []
    for _ in range(num_requests):
        start = time.perf_counter()
        read_streams(open_streams(server.port, [request]))
        found.append((time.perf_counter() - start) * 1000)
    return sorted(found)


def show(name: str, cpu: Mapping[str, float], share: float) -> None:
    parts = "  ".join(f"{part} {cpu[part]:6.1f}" for part in ORDER if part in cpu)
    print(f"{name:6} us/token: {parts}   {share:.2f} of the ideal rate", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--step-ms", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=100)
    options = parser.parse_args()
    common = ("--max-sequences", str(min(256, options.streams)))
    found: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with (
        serving("--engine", "scripted", *common) as local,
        serving("--engine", "ray", "--ray-engine", "scripted", *common) as remote,
    ):
        servers = {"local": local, "ray": remote}
        for server in servers.values():
            read_streams(open_streams(server.port, [scripted_request(20, 0.01)] * options.streams))
        for _ in range(options.rounds):
            for name, server in servers.items():
                cpu, share = spend(server, options)
                show(name, cpu, share)
                for part, value in cpu.items():
                    found[name][part].append(value)
                times = answer_ms(server, options.requests)
                found[name]["p50 ms"].append(times[len(times) // 2])
                found[name]["p99 ms"].append(times[int(len(times) * 0.99)])
    print(f"medians of {options.rounds} rounds:")
    for name, values in found.items():
        print(name, "  ".join(f"{part} {statistics.median(each):.1f}" for part, each in values.items()))


if __name__ == "__main__":
    main()
