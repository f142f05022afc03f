"""What a soak looks at while it runs: memory and descriptors of every process, and the server's own accounts."""

import time
from dataclasses import asdict, dataclass

import psutil

import harness_path  # noqa: F401 before the harness
from harness.server_view import Metrics, read_metrics

MIB = 1024 * 1024
ENGINE_MODULE = "tidegate.engine_process"
GAUGES = (
    "admission_requests",
    "admission_sequences",
    "admission_queued_tokens",
    "requests_running",
    "requests_waiting",
    "requests_held",
    "event_loop_tasks",
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One look. The server is all its processes together, without the engine."""

    at_s: float
    server_mib: float
    engine_mib: float
    server_descriptors: int
    server_processes: int
    blocks_used: float
    gauges: dict[str, float]

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def take_sample(root: psutil.Process, metrics: Metrics, start: float) -> Sample:
    server_bytes = engine_bytes = num_descriptors = num_processes = 0
    for process in [root, *root.children(recursive=True)]:
        try:
            with process.oneshot():
                is_engine, rss = ENGINE_MODULE in process.cmdline(), process.memory_info().rss
                descriptors = process.num_fds()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        if is_engine:
            engine_bytes += rss
        else:
            server_bytes, num_descriptors = server_bytes + rss, num_descriptors + descriptors
            num_processes += 1
    return Sample(
        at_s=round(time.monotonic() - start, 1),
        server_mib=server_bytes / MIB,
        engine_mib=engine_bytes / MIB,
        server_descriptors=num_descriptors,
        server_processes=num_processes,
        blocks_used=metrics.value("kv_blocks", state="used"),
        gauges={name: metrics.total(name) for name in GAUGES},
    )


def settle(root: psutil.Process, admin_port: int, start: float, timeout_s: float = 60.0) -> tuple[Sample, Metrics]:
    """Waits until nothing is live and the descriptors do not move; returns the last look, whatever it shows."""
    deadline = time.monotonic() + timeout_s
    last: Sample | None = None
    while True:
        metrics = read_metrics(admin_port)
        sample = take_sample(root, metrics, start)
        is_quiet = not sample.blocks_used and not sample.gauges["admission_requests"] and metrics.value("engine_up")
        is_still = last is not None and last.server_descriptors == sample.server_descriptors
        if (is_quiet and is_still) or time.monotonic() > deadline:
            return sample, metrics
        last = sample
        time.sleep(0.5)


def slope_mib_per_minute(samples: list[Sample], warm_up_s: float) -> float:
    """Returns the least-squares slope of the server's memory after the warm-up; 0 with fewer than three samples."""
    points = [(sample.at_s / 60, sample.server_mib) for sample in samples if sample.at_s >= warm_up_s]
    if len(points) < 3:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def lag_quantile_s(earlier: Metrics, now: Metrics, share: float) -> float:
    """Returns the upper bound of the bucket that holds this share of the event loop's lags between two scrapes."""
    bounds = ("0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "+Inf")
    total = now.since(earlier, "event_loop_lag_seconds_bucket", le="+Inf")
    for bound in bounds:
        if now.since(earlier, "event_loop_lag_seconds_bucket", le=bound) >= share * total:
            return float(bound)
    return float("inf")
