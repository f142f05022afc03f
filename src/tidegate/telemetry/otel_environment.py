"""What the standard variables of OpenTelemetry say where our settings say nothing. Pure.

Those of the exporter and the resource (`OTEL_EXPORTER_OTLP_*`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SERVICE_NAME`) are
read by OpenTelemetry itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_SAMPLERS: dict[str, tuple[float | None, bool]] = {
    "always_on": (1.0, False),
    "always_off": (0.0, False),
    "traceidratio": (None, False),
    "parentbased_always_on": (1.0, True),
    "parentbased_always_off": (0.0, True),
    "parentbased_traceidratio": (None, True),
}
"""For each sampler the share of new traces (None: the argument says it), and whether the caller's flag decides."""


@dataclass(frozen=True, slots=True)
class StandardSampling:
    """`ratio` and `follows_caller` are None where the environment says nothing of them. `fault` is for the operator."""

    ratio: float | None = None
    follows_caller: bool | None = None
    fault: str | None = None


def standard_sampling(environment: Mapping[str, str]) -> StandardSampling:
    """Returns what `OTEL_TRACES_SAMPLER` and its argument say. What cannot be read is a fault, and has no effect."""
    name = environment.get("OTEL_TRACES_SAMPLER", "").strip()
    if not name:
        return StandardSampling()
    if name not in _SAMPLERS:
        return StandardSampling(fault=f"OTEL_TRACES_SAMPLER={name} is none of {', '.join(_SAMPLERS)}; it has no effect")
    ratio, follows_caller = _SAMPLERS[name]
    if ratio is not None:
        return StandardSampling(ratio, follows_caller)
    given = environment.get("OTEL_TRACES_SAMPLER_ARG", "").strip()
    if not given:
        return StandardSampling(1.0, follows_caller)
    try:
        ratio = float(given)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        fault = f"OTEL_TRACES_SAMPLER_ARG={given} is no number from 0 to 1; every trace is recorded"
        return StandardSampling(1.0, follows_caller, fault)
    return StandardSampling(ratio, follows_caller)


def is_disabled(environment: Mapping[str, str]) -> bool:
    """Whether `OTEL_SDK_DISABLED` switches everything off."""
    return environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
