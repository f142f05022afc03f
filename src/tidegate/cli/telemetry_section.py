"""The section `[telemetry]`."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class TelemetrySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Spans of requests, for OpenTelemetry. Never prompts, never answers, never keys."""

    exporter: Annotated[Literal["off", "otlp"], Meta(description="where spans go; otlp needs the extra telemetry")] = (
        "off"
    )
    endpoint: Annotated[
        str | None,
        Meta(
            description="the collector, such as http://127.0.0.1:4318; OTEL_EXPORTER_OTLP_ENDPOINT, or that, if absent"
        ),
    ] = None
    headers_file: Annotated[
        str | None,
        Meta(description="file with headers for the collector, one `name: value` a line; OTEL_EXPORTER_OTLP_HEADERS"),
    ] = None
    timeout_s: Annotated[
        Annotated[float, Meta(gt=0, le=300)] | None,
        Meta(description="time for one export with its retries; OTEL_EXPORTER_OTLP_TIMEOUT, or 10, if absent"),
    ] = None
    service_name: Annotated[str | None, Meta(description="service.name; OTEL_SERVICE_NAME, or tidegate, if absent")] = (
        None
    )
    sample_ratio: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="share of new traces that is recorded; OTEL_TRACES_SAMPLER, or all, if absent"),
    ] = None
    follow_caller: Annotated[
        bool | None,
        Meta(
            description="whether a caller's sampled flag decides on its trace; OTEL_TRACES_SAMPLER, or yes, if absent"
        ),
    ] = None
    queue_requests: Annotated[int, Meta(description="ended requests whose spans may wait; more are dropped", ge=1)] = (
        2048
    )
    interval_s: Annotated[float, Meta(description="how long a batch that is not full waits", ge=0.01, le=60)] = 2.0
    flush_s: Annotated[
        float, Meta(description="how long the last spans may take at the end of the server", ge=0, le=60)
    ] = 3.0
