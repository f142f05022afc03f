"""The numbers of a run that can be compared and required, by name. Pure.

`ttft_p50`, `itl_p99`, `tpot_p50`, `e2e_p95`, ..., `itl_max` (seconds), `requests_per_s`, `output_tokens_per_s`,
`goodput_per_s`, `good_share`, `error_share`; with a group's name before it (`short.itl_p99`) of that group alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.loadtest.distribution import PERCENTILES, Distribution
from tidegate.loadtest.run_summary import Group, Run


@dataclass(frozen=True, slots=True)
class Metric:
    """`unit`: `s`, `/s`, or nothing for shares. `is_more_better`: whether a greater number is the better one."""

    name: str
    label: str
    unit: str
    is_more_better: bool
    read: Callable[[Group], float | None]


def _share(part: int | None, group: Group) -> float | None:
    num_ended = group.num_requests - group.num_unfinished
    return None if part is None or not num_ended else part / num_ended


def _point(member: str, point: str) -> Callable[[Group], float | None]:
    def read(group: Group) -> float | None:
        found: Distribution | None = getattr(group, f"{member}_s")
        return None if found is None else float(getattr(found, point))

    return read


TIMES = {
    "ttft": "time to first token",
    "itl": "inter-token latency",
    "tpot": "mean time a token",
    "e2e": "time to the end",
}
_RATES = (
    Metric("requests_per_s", "requests", "/s", True, lambda group: group.requests_per_s),
    Metric("output_tokens_per_s", "output tokens", "/s", True, lambda group: group.output_tokens_per_s),
    Metric("goodput_per_s", "good requests", "/s", True, lambda group: group.goodput_per_s),
)
_SHARES = (
    Metric("good_share", "share of good requests", "", True, lambda group: _share(group.num_good, group)),
    Metric("error_share", "share of errors", "", False, lambda group: _share(group.num_errors, group)),
)
SHOWN_OF: dict[str, tuple[str, ...]] = {name: tuple(f"p{number}" for number in PERCENTILES) for name in TIMES}
SHOWN_OF["itl"] += ("max",)
"""What is told of each time. A stall of a stream is its longest gap; among thousands of gaps p99 does not see it."""


def _latency(name: str, point: str) -> Metric:
    label = f"{TIMES[name]}, {'longest' if point == 'max' else point}"
    return Metric(f"{name}_{point}", label, "s", False, _point(name, point))


_LATENCIES = tuple(_latency(name, point) for name, points in SHOWN_OF.items() for point in points)
METRICS: dict[str, Metric] = {metric.name: metric for metric in (*_RATES, *_LATENCIES, *_SHARES)}


def read_metric(run: Run, name: str) -> float | None:
    """Returns a run's number by its name; None where the run has none. Raises KeyError where no metric is called so."""
    group_name, dot, metric_name = name.rpartition(".")
    metric = METRICS[metric_name]
    if not dot or group_name == "all":
        return metric.read(run.total)
    return next((metric.read(group) for group in run.groups if group.name == group_name), None)


def metric_of(name: str) -> Metric:
    """Returns the metric that a name with or without a group means. Raises KeyError."""
    return METRICS[name.rpartition(".")[2]]
