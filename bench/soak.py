"""Half an hour of trouble at half load: disconnects, retries, stuck readers, deadlines, two engine kills.

Ends with status 1 unless: every request is accounted for as exactly one of completed, refused, aborted, failed, by the
clients' own count and by the server's; every answer holds its own words only; no block, permit, task or descriptor is
left; memory does not grow (under 1 MiB a minute after the warm-up); the event loop's lag stays under 50 ms (p99). The
last two are judged in runs of ten minutes and more: a short one is mostly warm-up, and its machine is rarely its own.

python bench/soak.py [--minutes 30] [--engine scripted] [--workers 1] [--seed 1] [--report FILE.json]
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import harness_path  # noqa: F401 before the harness
from harness.accounting import faults_of, read_accounts
from harness.server_view import Metrics, engine_state, read_metrics, read_ready
from server_process import ServerProcess, serving
from soak_clients import ABORTED, COMPLETED, FAILED, REFUSED, REPLAYED, Client, Tally, Turnstile, find_served
from soak_samples import Sample, lag_quantile_s, settle, slope_mib_per_minute, take_sample

ROWS = 32
NUM_CLIENTS = ROWS // 2
NUM_KILLS = 2
MAX_SLOPE_MIB = 1.0
MAX_LAG_S = 0.05
LONG_MINUTES = 10.0
SETTINGS = {
    "TIDEGATE_SERVER__SEND_BUFFER_BYTES": "4096",
    "TIDEGATE_SERVER__UNSENT_BYTES": "65536",
    "TIDEGATE_SERVER__SLOW_CLIENT_TIMEOUT_S": "2",
    "TIDEGATE_SERVER__DRAIN_TIMEOUT_S": "5",
}


@dataclass(slots=True)
class Soak:
    """One run against one server."""

    server: ServerProcess
    minutes: float
    tally: Tally = field(default_factory=Tally)
    turnstile: Turnstile = field(default_factory=Turnstile)
    samples: list[Sample] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)
    start: float = field(default_factory=time.monotonic)
    num_kills: int = 0

    def run(self) -> tuple[Sample, Sample, Metrics, Metrics]:
        """Returns the accounts at rest before and after."""
        served = find_served(self.server.port)
        print(f"serves: {', '.join(sorted(served)) or 'neither deadlines nor idempotency keys'}", flush=True)
        self._warm_up(served)
        before, counted = settle(self.server.process, self.server.admin_port, self.start)
        self.tally, self.start = Tally(), time.monotonic()
        threads = self._start_clients(served, self.is_over)
        self._watch()
        self.is_over.set()
        for thread in threads:
            thread.join()
        after, now = settle(self.server.process, self.server.admin_port, self.start)
        return before, after, counted, now

    def _warm_up(self, served: frozenset[str]) -> None:
        """What is made once (threads, pools, caches) is made before anything is compared."""
        is_over = threading.Event()
        threads = self._start_clients(served, is_over)
        time.sleep(5.0)
        is_over.set()
        for thread in threads:
            thread.join()

    def _start_clients(self, served: frozenset[str], is_over: threading.Event) -> list[threading.Thread]:
        server = self.server
        prefix = NUM_CLIENTS if self.samples or is_over is self.is_over else 0
        clients = [
            Client(prefix + i, server.port, server.admin_port, self.tally, self.turnstile, served, is_over)
            for i in range(NUM_CLIENTS)
        ]
        threads = [threading.Thread(target=client.run, name=f"client {client.number}") for client in clients]
        for thread in threads:
            thread.start()
        return threads

    def _watch(self) -> None:
        """Samples, kills, and tells how it goes, until the time is up."""
        total_s = self.minutes * 60
        period_s = max(1.0, min(10.0, total_s / 60))
        kill_at = [total_s * (kill + 1) / (NUM_KILLS + 1) for kill in range(NUM_KILLS)]
        print(f"{'s':>6}{'server MiB':>12}{'engine MiB':>12}{'fds':>6}{'tasks':>7}{'blocks':>8}  outcomes", flush=True)
        while (elapsed := time.monotonic() - self.start) < total_s:
            if kill_at and elapsed >= kill_at[0]:
                kill_at.pop(0)
                self._kill()
            sample = take_sample(self.server.process, read_metrics(self.server.admin_port), self.start)
            self.samples.append(sample)
            print(
                f"{sample.at_s:6.0f}{sample.server_mib:12.1f}{sample.engine_mib:12.1f}{sample.server_descriptors:6d}"
                f"{sample.gauges['event_loop_tasks']:7.0f}{sample.blocks_used:8.0f}  {dict(self.tally.outcomes)}",
                flush=True,
            )
            time.sleep(period_s)

    def _kill(self) -> None:
        with self.turnstile.killing():
            before = now = engine_state(self.server.admin_port)
            os.kill(before["process_id"], 9)
            self.num_kills += 1
            # The epoch moves with the greeting of the next engine; the old one's end may take a moment to be known.
            while now["epoch"] == before["epoch"] or not now["ready"]:
                time.sleep(0.02)
                now = engine_state(self.server.admin_port)
            while read_ready(self.server.admin_port).status != 200:
                time.sleep(0.02)


def judge(
    soak: Soak, before: Sample, after: Sample, counted: Metrics, now: Metrics
) -> tuple[dict[str, object], list[str]]:
    """Returns the figures, and everything that must not be."""
    tally, accounts = soak.tally, read_accounts(counted, now)
    faults = [*faults_of(counted, now), *tally.violations]
    told = {name: tally.outcomes[name] for name in (COMPLETED, REFUSED, ABORTED, FAILED, REPLAYED)}
    seen = {name: getattr(accounts, name) for name in told}
    if told != seen:
        faults.append(f"the clients count {told}, the server {seen}")
    stray = set(tally.outcomes) - set(told)
    faults += [f"unexpected answers: {name} x {tally.outcomes[name]}" for name in sorted(stray)]
    for name in ("server_descriptors", "server_processes"):
        if getattr(after, name) > getattr(before, name):
            faults.append(f"{name}: {getattr(before, name)} before, {getattr(after, name)} after")
    if after.gauges["event_loop_tasks"] > before.gauges["event_loop_tasks"]:
        faults.append(
            f"tasks: {before.gauges['event_loop_tasks']:g} before, {after.gauges['event_loop_tasks']:g} after"
        )
    slope = slope_mib_per_minute(soak.samples, soak.minutes * 60 / 4)
    lag = lag_quantile_s(counted, now, 0.99)
    if soak.minutes >= LONG_MINUTES:
        faults += [f"memory grows by {slope:.2f} MiB a minute"] if slope > MAX_SLOPE_MIB else []
        faults += [f"the event loop lags by up to {lag} s (p99)"] if lag > MAX_LAG_S else []
    figures: dict[str, object] = {
        "minutes": soak.minutes,
        "engine kills": soak.num_kills,
        "requests": sum(tally.outcomes.values()),
        **{f"{name} (clients, server)": (told[name], seen[name]) for name in told},
        "what clients did": dict(tally.actions),
        "tokens charged, delivered": (accounts.charged_tokens, accounts.delivered_tokens),
        "stale outputs dropped": accounts.stale_outputs,
        "memory slope, MiB a minute": round(slope, 3),
        "server memory before, after, MiB": (round(before.server_mib, 1), round(after.server_mib, 1)),
        "descriptors before, after": (before.server_descriptors, after.server_descriptors),
        "tasks before, after": (before.gauges["event_loop_tasks"], after.gauges["event_loop_tasks"]),
        "event loop lag p99 at most, s": lag,
    }
    return figures, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--engine", default="scripted", choices=["scripted"])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--report", type=Path, default=None)
    options = parser.parse_args()
    arguments = ["--engine", options.engine, "--workers", str(options.workers), "--max-sequences", str(ROWS)]
    with tempfile.TemporaryDirectory() as folder:
        environment = SETTINGS | {"TIDEGATE_SERVER__STATE_DIR": folder}
        with serving(*arguments, **environment) as server:
            soak = Soak(server, options.minutes)
            before, after, counted, now = soak.run()
    figures, faults = judge(soak, before, after, counted, now)
    print()
    for name, value in figures.items():
        print(f"{name:36} {value}")
    for fault in faults:
        print(f"VIOLATION  {fault}")
    print("held" if not faults else f"MISSED: {len(faults)} violations")
    if options.report is not None:
        report = {"figures": figures, "violations": faults, "samples": [asdict(sample) for sample in soak.samples]}
        options.report.write_text(json.dumps(report, indent=1), "utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
