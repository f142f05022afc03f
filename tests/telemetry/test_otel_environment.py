"""What OpenTelemetry's own variables say, and what of them has no effect."""

import pytest

from tidegate.telemetry.otel_environment import StandardSampling, is_disabled, standard_sampling

SAMPLERS: dict[str, tuple[dict[str, str], tuple[float | None, bool | None]]] = {
    "nothing": ({}, (None, None)),
    "empty": ({"OTEL_TRACES_SAMPLER": ""}, (None, None)),
    "always_on": ({"OTEL_TRACES_SAMPLER": "always_on"}, (1.0, False)),
    "always_off": ({"OTEL_TRACES_SAMPLER": "always_off"}, (0.0, False)),
    "parentbased_always_on": ({"OTEL_TRACES_SAMPLER": "parentbased_always_on"}, (1.0, True)),
    "parentbased_always_off": ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, (0.0, True)),
    "a ratio": ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"}, (0.25, False)),
    "a ratio below": (
        {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": " 0.5 "},
        (0.5, True),
    ),
    "a ratio without its argument": ({"OTEL_TRACES_SAMPLER": "traceidratio"}, (1.0, False)),
    "an argument alone": ({"OTEL_TRACES_SAMPLER_ARG": "0.5"}, (None, None)),
}
FAULTS: dict[str, tuple[dict[str, str], tuple[float | None, bool | None]]] = {
    "an unknown sampler": ({"OTEL_TRACES_SAMPLER": "jaeger_remote"}, (None, None)),
    "a ratio above 1": ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"}, (1.0, False)),
    "no number": ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "half"}, (1.0, False)),
    "not a number": ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "nan"}, (1.0, False)),
}


@pytest.mark.parametrize(("environment", "expected"), SAMPLERS.values(), ids=SAMPLERS)
def test_a_standard_sampler_is_followed(
    environment: dict[str, str], expected: tuple[float | None, bool | None]
) -> None:
    assert standard_sampling(environment) == StandardSampling(*expected)


@pytest.mark.parametrize(("environment", "expected"), FAULTS.values(), ids=FAULTS)
def test_what_cannot_be_read_is_a_fault_with_its_name(
    environment: dict[str, str], expected: tuple[float | None, bool | None]
) -> None:
    found = standard_sampling(environment)
    assert (found.ratio, found.follows_caller) == expected
    assert found.fault is not None
    assert "OTEL_TRACES_SAMPLER" in found.fault


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("TRUE ", True), ("1", False), ("", False)])
def test_only_true_disables(value: str, expected: bool) -> None:
    assert is_disabled({"OTEL_SDK_DISABLED": value}) is expected
