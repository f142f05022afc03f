"""What the settings say of traces: which requests are recorded, and where their spans go."""

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tidegate.cli.settings import Settings
from tidegate.observability.request_spans import SpanSite
from tidegate.observability.request_trace import UNTRACED, TracePolicy
from tidegate.system import entropy
from tidegate.telemetry.otel_environment import is_disabled, standard_sampling
from tidegate.telemetry.otlp_exporter import OtlpExporter, OtlpSettings, TelemetryBroken, check_extra
from tidegate.telemetry.span_pump import SpanPump

DISABLED = "OTEL_SDK_DISABLED is true: no spans are exported"
MAX_HEADERS_BYTES = 16 * 1024
_FORBIDDEN_MODE = 0o027
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*[:=]\s*([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)")
_INSTANCE_BYTES = 16


@dataclass(frozen=True, slots=True)
class Telemetry:
    """`pump` is None where no spans are exported."""

    policy: TracePolicy = UNTRACED
    pump: SpanPump | None = None


def open_telemetry(settings: Settings, environment: Mapping[str, str] = os.environ) -> Telemetry:
    """Returns what this process does with traces; nothing is sent before the pump's `start`. Raises TelemetryBroken."""
    chosen = settings.telemetry
    if chosen.exporter == "off" or is_disabled(environment):
        return Telemetry()
    otlp = otlp_settings(settings)
    host = socket.gethostname()
    pump = SpanPump(
        lambda: OtlpExporter(otlp),
        SpanSite(host),
        max_requests=chosen.queue_requests,
        interval_s=chosen.interval_s,
    )
    return Telemetry(trace_policy(settings, environment), pump)


def trace_policy(settings: Settings, environment: Mapping[str, str]) -> TracePolicy:
    """Returns which requests are recorded: settings first, then OpenTelemetry's own variables."""
    chosen, standard = settings.telemetry, standard_sampling(environment)
    ratio = standard.ratio if chosen.sample_ratio is None else chosen.sample_ratio
    follows = standard.follows_caller if chosen.follow_caller is None else chosen.follow_caller
    return TracePolicy(True, 1.0 if ratio is None else ratio, True if follows is None else follows)


def check_telemetry(settings: Settings, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Returns what the operator should know before the start. Raises TelemetryBroken for what cannot work."""
    if settings.telemetry.exporter == "off":
        return []
    if is_disabled(environment):
        return [DISABLED]
    check_extra()
    otlp_settings(settings)
    fault = standard_sampling(environment).fault
    return [] if fault is None or settings.telemetry.sample_ratio is not None else [fault]


def otlp_settings(settings: Settings) -> OtlpSettings:
    """Returns how spans are exported. Raises TelemetryBroken for an address or a file that cannot be used."""
    chosen = settings.telemetry
    if chosen.endpoint is not None:
        _check_endpoint(chosen.endpoint)
    return OtlpSettings(
        endpoint=chosen.endpoint,
        headers=None if chosen.headers_file is None else read_headers(Path(chosen.headers_file)),
        timeout_s=chosen.timeout_s,
        service_name=chosen.service_name,
        resource={"service.instance.id": entropy(_INSTANCE_BYTES).hex(), "host.name": socket.gethostname()},
    )


def read_headers(file: Path) -> dict[str, str]:
    """Returns the headers of a file, one `name: value` a line. Raises TelemetryBroken; no message repeats a line."""
    place = f"telemetry.headers_file {file}"
    try:
        with file.expanduser().open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            content = stream.read(MAX_HEADERS_BYTES + 1)
    except (OSError, RuntimeError) as error:
        raise TelemetryBroken(
            f"{place} cannot be read: {getattr(error, 'strerror', None) or 'it is no file'}."
        ) from None
    if mode & _FORBIDDEN_MODE:
        raise TelemetryBroken(f"{place} may be read or changed by other users; run: chmod 600 {file}")
    if len(content) > MAX_HEADERS_BYTES:
        raise TelemetryBroken(f"{place} is larger than {MAX_HEADERS_BYTES} bytes.")
    headers: dict[str, str] = {}
    for number, line in enumerate(content.decode("latin-1").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _HEADER.fullmatch(line.strip())
        if found is None:
            raise TelemetryBroken(f"{place}, line {number}: not a header such as `authorization: Bearer ...`.")
        headers[found[1].lower()] = found[2]
    return headers


def _check_endpoint(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise TelemetryBroken(f"telemetry.endpoint {endpoint!r} is not an address such as http://127.0.0.1:4318")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise TelemetryBroken(
            "telemetry.endpoint has no user, query or fragment; secrets go into telemetry.headers_file"
        )
