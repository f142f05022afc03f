"""What a server says of itself in the Prometheus text format, where its names of metrics are known: how much runs,
waits and is held in memory, and how many tokens were generated.

Names are facts of each server's documentation. Does not know: whether what it says is right.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

MAX_PAGE_CHARS = 2 * 1024 * 1024
"""A page of more is none of a known format: it is read again and again, beside what is measured."""
_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^}]*)\})?\s+(\S+)")
_LABEL = re.compile(r'(?<![a-zA-Z0-9_])([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: a name, its labels, its value."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Series:
    """A name of samples, and the labels that they must carry; all samples that match are added up."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MetricFormat:
    """Names of one kind of server. Empty: it has no such metric. `is_lazy`: its gauges may keep their last value while
    nothing runs, so that one which does not fall proves nothing.
    """

    server: str
    running: tuple[Series, ...]
    waiting: tuple[Series, ...] = ()
    used: tuple[Series, ...] = ()
    generated: tuple[Series, ...] = ()
    ended: tuple[Series, ...] = ()
    is_lazy: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """`running`, `waiting`: requests or sequences. `used`: memory held by them, in the server's own unit. `generated`:
    tokens since its start. `ended`: requests that ended well since then. None: the server does not say.
    """

    server: str
    running: float
    waiting: float | None
    used: float | None
    generated: float | None
    ended: float | None
    is_lazy: bool


def _series(name: str, **labels: str) -> tuple[Series, ...]:
    return (Series(name, labels),)


FORMATS: tuple[MetricFormat, ...] = (
    MetricFormat(
        "Tidegate",
        running=_series("tidegate_requests_running") + _series("tidegate_admission_requests"),
        waiting=_series("tidegate_requests_waiting") + _series("tidegate_admission_waiting_requests"),
        used=_series("tidegate_kv_blocks", state="used"),
        generated=_series("tidegate_engine_output_tokens_total"),
        ended=_series("tidegate_request_success_total"),
    ),
    MetricFormat(
        "vLLM",
        running=_series("vllm:num_requests_running"),
        waiting=_series("vllm:num_requests_waiting"),
        used=_series("vllm:kv_cache_usage_perc") + _series("vllm:gpu_cache_usage_perc"),
        generated=_series("vllm:generation_tokens_total"),
        ended=_series("vllm:request_success_total"),
    ),
    MetricFormat(
        "SGLang",
        running=_series("sglang:num_running_reqs"),
        waiting=_series("sglang:num_queue_reqs"),
        used=_series("sglang:token_usage"),
        generated=_series("sglang:generation_tokens_total"),
        ended=_series("sglang:num_requests_total"),
        is_lazy=True,
    ),
    MetricFormat(
        "llama-server",
        running=_series("llamacpp:requests_processing"),
        waiting=_series("llamacpp:requests_deferred"),
        generated=_series("llamacpp:tokens_predicted_total"),
    ),
)
"""In the order in which they are tried: a server in front of another may show both."""


def read_samples(text: str) -> list[Sample]:
    """Returns the samples of a page in the Prometheus or OpenMetrics text format; other lines are passed over."""
    samples = []
    for line in text.splitlines():
        if line.startswith("#") or (match := _SAMPLE.match(line)) is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        samples.append(Sample(match[1], dict(_LABEL.findall(match[2] or "")), value))
    return samples


def _total(samples: list[Sample], wanted: tuple[Series, ...]) -> float | None:
    values = [
        sample.value
        for series in wanted
        for sample in samples
        if sample.name == series.name and series.labels.items() <= sample.labels.items()
    ]
    return sum(values) if values else None


def read_load(text: str) -> Load | None:
    """Returns what the page says; None where it is of no known format, or longer than `MAX_PAGE_CHARS`."""
    if len(text) > MAX_PAGE_CHARS:
        return None
    samples = read_samples(text)
    for known in FORMATS:
        running = _total(samples, known.running)
        if running is not None:
            return Load(
                server=known.server,
                running=running,
                waiting=_total(samples, known.waiting),
                used=_total(samples, known.used),
                generated=_total(samples, known.generated),
                ended=_total(samples, known.ended),
                is_lazy=known.is_lazy,
            )
    return None
