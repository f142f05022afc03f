"""What the settings of traces say, and what cannot be used is refused before the start, by name."""

from pathlib import Path

import msgspec
import pytest

from tidegate.cli.open_telemetry import MAX_HEADERS_BYTES, check_telemetry, open_telemetry, read_headers, trace_policy
from tidegate.cli.settings import Settings
from tidegate.cli.telemetry_section import TelemetrySettings
from tidegate.observability.request_trace import TracePolicy
from tidegate.telemetry.otlp_exporter import TelemetryBroken, traces_url

RATIO = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"}


def settings(**fields: object) -> Settings:
    telemetry = msgspec.convert({"exporter": "otlp", **fields}, TelemetrySettings)
    return Settings(telemetry=telemetry)


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        (None, None),
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://collector:4318/", "http://collector:4318/v1/traces"),
        ("https://far/otlp", "https://far/otlp/v1/traces"),
        ("https://far/otlp/v1/traces", "https://far/otlp/v1/traces"),
    ],
)
def test_a_collectors_address_gets_the_usual_path(endpoint: str | None, url: str | None) -> None:
    assert traces_url(endpoint) == url


@pytest.mark.parametrize(
    "endpoint", ["collector:4318", "ftp://x", "http://", "http://x:99999", "http://u:p@x", "http://x?a=1", "grpc://x"]
)
def test_an_address_that_cannot_be_used_is_named(endpoint: str) -> None:
    with pytest.raises(TelemetryBroken, match=r"telemetry\.endpoint"):
        check_telemetry(settings(endpoint=endpoint), {})


def test_settings_come_before_the_standard_variables() -> None:
    assert trace_policy(settings(), {}) == TracePolicy(True, 1.0, True)
    assert trace_policy(settings(), RATIO) == TracePolicy(True, 0.25, False)
    assert trace_policy(settings(sample_ratio=0.5), RATIO) == TracePolicy(True, 0.5, False)
    assert trace_policy(settings(follow_caller=True), RATIO) == TracePolicy(True, 0.25, True)


def test_a_standard_variable_that_cannot_be_read_is_a_warning() -> None:
    [warning] = check_telemetry(settings(), {"OTEL_TRACES_SAMPLER": "odd"})
    assert "odd" in warning
    assert check_telemetry(settings(sample_ratio=1.0), {"OTEL_TRACES_SAMPLER": "odd"}) == []
    assert check_telemetry(Settings(), {"OTEL_TRACES_SAMPLER": "odd"}) == []


def test_nothing_is_exported_where_it_is_off_or_disabled() -> None:
    assert open_telemetry(Settings(), {}).pump is None
    assert open_telemetry(settings(), {"OTEL_SDK_DISABLED": "true"}).pump is None
    assert open_telemetry(settings(), {"OTEL_SDK_DISABLED": "true"}).policy == TracePolicy()
    assert check_telemetry(settings(), {"OTEL_SDK_DISABLED": "true"})


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_headers_are_read_a_line_each(tmp_path: Path) -> None:
    file = write(tmp_path / "h", "# comment\n\nAuthorization: Bearer a b\r\nX-Tenant=blue\n")
    assert read_headers(file) == {"authorization": "Bearer a b", "x-tenant": "blue"}


@pytest.mark.parametrize(
    ("text", "mode"),
    [("a: b", 0o644), ("a: b", 0o620), ("no header", 0o600), ("a: \x01secret", 0o600), ("a:secret\u00e9", 0o600)],
    ids=["others may read", "the group may write", "no divider", "control character", "not ASCII"],
)
def test_a_file_of_headers_that_cannot_be_used_is_refused_and_not_quoted(tmp_path: Path, text: str, mode: int) -> None:
    file = write(tmp_path / "h", text, mode)
    with pytest.raises(TelemetryBroken, match=r"telemetry\.headers_file") as raised:
        check_telemetry(settings(headers_file=str(file)), {})
    assert "secret" not in str(raised.value)


def test_a_large_file_of_headers_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "h", "a: b\n" * (MAX_HEADERS_BYTES // 5))
    assert read_headers(file) == {"a": "b"}
    file.write_text(file.read_text() + "a: b\n" * 2)
    with pytest.raises(TelemetryBroken, match=str(MAX_HEADERS_BYTES)):
        read_headers(file)


def test_a_missing_file_of_headers_is_named(tmp_path: Path) -> None:
    with pytest.raises(TelemetryBroken, match="No such file"):
        check_telemetry(settings(headers_file=str(tmp_path / "none")), {})
