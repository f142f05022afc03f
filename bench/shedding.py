"""What it costs to say no: the machine alone, and through HTTP against the cheapest answer that there is.

A refusal must cost the same however much waits, and the engine must not hear of it. HTTP: CPU of the server process
for one refused chat request over that of one `GET /health`, on connections that stay open.
Usage: python bench/shedding.py [--requests 4000] [--rounds 3]
"""

import argparse
import contextlib
import json
import socket
import statistics
import time
from collections.abc import Callable

from server_process import ServerProcess, serving
from stream_cost import CHAT
from stream_reader import http_request, open_streams
from tidegate.errors import ServeError
from tidegate.lifecycle.admission import AdmissionController, AdmissionLimits
from tidegate.lifecycle.cost_model import CostModel
from tidegate.lifecycle.drain import Drain, DrainEvent
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.ticket import Ticket

COSTS = CostModel(prefill_base_s=0.020, prefill_token_s=0.000035, step_s=0.045)
RATED = Quotas(requests_per_minute=1)
NUM_CALLS = 20_000


def full_gate(num_waiting: int) -> tuple[AdmissionController, Drain]:
    """A gate with so many requests waiting, of a hundred keys, all of them with a deadline."""
    drain = Drain()
    limits = AdmissionLimits(1, num_waiting, 1 << 40, queue_deadline_ms=10**9)
    gate = AdmissionController(limits, drain, declared=COSTS)
    for i in range(num_waiting + 1):
        gate.enter(Ticket(f"r{i}", f"k{i % 100}", 1, 100, 10, 7, 0.0, first_token_by=1e9), 0.0)
        gate.poll(0.0)
    return gate, drain


def refusal_cost(gate: AdmissionController, make: Callable[[int], Ticket]) -> float:
    """Returns microseconds for one refused `enter`, its ticket included."""
    begin = time.perf_counter()
    for i in range(NUM_CALLS):
        with contextlib.suppress(ServeError):
            gate.enter(make(i), 1.0)
    return (time.perf_counter() - begin) / NUM_CALLS * 1e6


def turn_cost(gate: AdmissionController, num_waiting: int) -> float:
    """Returns microseconds for one request to come in behind the others, and for the next one to get its turn."""
    running = "r0"
    begin = time.perf_counter()
    for i in range(NUM_CALLS):
        gate.leave(running, 110, 1.0)
        running = next(decision.ticket_id for decision in gate.poll(1.0))
        gate.enter(Ticket(f"s{i}", f"k{i % 100}", 1, 100, 10, 7, 0.0), 1.0)
        gate.poll(1.0)
    assert gate.statistics().num_waiting == num_waiting
    return (time.perf_counter() - begin) / NUM_CALLS * 1e6


def measure_machine() -> None:
    print("the machine, microseconds a call")
    kinds: dict[str, Callable[[int], Ticket]] = {
        "queue full": lambda i: Ticket(f"n{i}", "k", 1, 100, 10, 7, 0.0),
        "queue full, with a deadline": lambda i: Ticket(f"n{i}", "k", 1, 100, 10, 7, 0.0, first_token_by=1e6),
        "quota used up": lambda i: Ticket(f"n{i}", "rated", 1, 100, 10, 7, 0.0, quotas=RATED),
    }
    for num_waiting in (16, 256, 10_000):
        gate, drain = full_gate(num_waiting)
        gate.leave("r1", 0, 0.0)
        gate.enter(Ticket("first", "rated", 1, 100, 10, 7, 0.0, quotas=RATED), 0.0)
        costs = {name: refusal_cost(gate, make) for name, make in kinds.items()}
        costs["enter, leave and next turn"] = turn_cost(gate, num_waiting)
        drain.apply(DrainEvent.BEGIN)
        costs["draining"] = refusal_cost(gate, kinds["queue full"])
        print(f"  {num_waiting:6d} waiting: " + ", ".join(f"{name} {cost:.1f}" for name, cost in costs.items()))


def ask(sock: socket.socket, request: bytes, status: bytes) -> None:
    """One request and its whole answer on an open connection."""
    sock.sendall(request)
    answer = sock.recv(1 << 16)
    while b"\r\n\r\n" not in answer:
        answer += sock.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 " + status), answer[:200]
    head, _, body = answer.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += sock.recv(1 << 16)


def http_cost(server: ServerProcess, request: bytes, status: bytes, num_requests: int) -> tuple[float, list[float]]:
    """Returns microseconds of server CPU for one answer, and every answer's latency in seconds."""
    latencies = []
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        before = server.cpu_s()
        for _ in range(num_requests):
            begin = time.perf_counter()
            ask(sock, request, status)
            latencies.append(time.perf_counter() - begin)
    return (server.cpu_s() - before) / num_requests * 1e6, latencies


def measure_http(num_requests: int, num_rounds: int) -> None:
    body = json.dumps({"model": "scripted", "messages": [{"role": "user", "content": "go"}]}).encode()
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    refused, health = head.encode() + body, b"GET /health HTTP/1.1\r\nHost: bench\r\n\r\n"
    holder = {"pieces": ["61", "62"], "delays_s": [0, 3600]}
    hold = {"model": "scripted", "messages": [{"role": "user", "content": "go"}], "stream": True, "x_script": holder}
    environment = {"TIDEGATE_ADMISSION__QUEUE_DEPTH": "0", "TIDEGATE_SERVER__DRAIN_TIMEOUT_S": "0"}
    with serving("--engine", "scripted", "--max-sequences", "1", **environment) as server:
        (held,) = open_streams(server.port, [http_request(CHAT, hold)])
        time.sleep(1.0)
        before = server.engine()["gauges"]
        costs: dict[str, list[float]] = {"refused": [], "health": []}
        latencies: list[float] = []
        for _ in range(num_rounds):
            cost, slow = http_cost(server, refused, b"429", num_requests)
            costs["refused"].append(cost)
            latencies += slow
            costs["health"].append(http_cost(server, health, b"200", num_requests)[0])
        medians = {name: statistics.median(values) for name, values in costs.items()}
        ratio = medians["refused"] / medians["health"]
        print("through HTTP, microseconds of server CPU an answer")
        print(f"  refused {medians['refused']:.0f}, GET /health {medians['health']:.0f}: x {ratio:.2f}")
        p99_ms = statistics.quantiles(latencies, n=100)[98] * 1e3
        print(f"  p99 latency of a refusal {p99_ms:.2f} ms; bound 50 ms:", "held" if p99_ms < 50 else "MISSED")
        print("  the engine heard of none:", "held" if server.engine()["gauges"] == before else "MISSED")
        held.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    measure_machine()
    measure_http(options.requests, options.rounds)


if __name__ == "__main__":
    main()
