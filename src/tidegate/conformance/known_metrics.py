"""How many requests a server says that it works on, read from metrics in the formats that we know (Prometheus text).

Known: Tidegate, vLLM, SGLang, llama-server. Does not know: where the text came from.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadFormat:
    """Names of the gauges of running and of waiting requests. `source`: whose they are."""

    source: str
    running: str
    waiting: str


FORMATS: tuple[LoadFormat, ...] = (
    LoadFormat("tidegate", "tidegate_requests_running", "tidegate_requests_waiting"),
    LoadFormat("vllm", "vllm:num_requests_running", "vllm:num_requests_waiting"),
    LoadFormat("sglang", "sglang:num_running_reqs", "sglang:num_queue_reqs"),
    LoadFormat("llama-server", "llamacpp:requests_processing", "llamacpp:requests_deferred"),
)

_SAMPLE = re.compile(r"^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{.*\})?[ \t]+(\S+)(?:[ \t]+\S+)?$")


@dataclass(frozen=True, slots=True)
class Load:
    """`running` and `waiting`: summed over all label sets."""

    source: str
    running: float
    waiting: float


def read_load(text: str) -> Load | None:
    """Returns the load; None where the text is in no known format."""
    sums: dict[str, float] = {}
    names = {name for form in FORMATS for name in (form.running, form.waiting)}
    for line in text.splitlines():
        found = _SAMPLE.match(line.strip())
        if found is not None and found[1] in names:
            try:
                sums[found[1]] = sums.get(found[1], 0.0) + float(found[2])
            except ValueError:
                continue
    for form in FORMATS:
        if form.running in sums:
            return Load(form.source, sums[form.running], sums.get(form.waiting, 0.0))
    return None
