"""OtlpExporter: spans to a collector, as OTLP over HTTP with protobuf. The only file that knows OpenTelemetry.

Spans come here when they are over, with their ids: OpenTelemetry's tracer is given both the instants and the ids, and
its exporter does the rest: encoding, compression, retries, and the variables `OTEL_EXPORTER_OTLP_*` for what settings
leave open. Belongs to one thread.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.contract.trace_context import SAMPLED
from tidegate.observability.span import Span, SpanKind, TracedSpans
from tidegate.telemetry.exporter_words import ExporterWords

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import SpanExporter as OtelExporter

TRACES_PATH = "/v1/traces"
DEFAULT_SERVICE = "tidegate"
_NANOSECONDS = 1_000_000_000


class TelemetryBroken(Exception):
    """Spans cannot be exported as the settings say; the message says why, for operators."""


@dataclass(frozen=True, slots=True)
class OtlpSettings:
    """None for what OpenTelemetry's own variables say, or its defaults. `endpoint` is the collector's address.

    `headers` may be secret; no message repeats them. `resource` are attributes of this process.
    """

    endpoint: str | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    timeout_s: float | None = None
    service_name: str | None = None
    resource: Mapping[str, str] = field(default_factory=dict)


def check_extra() -> None:
    """Raises TelemetryBroken where OpenTelemetry's packages are not installed."""
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError as error:
        raise TelemetryBroken(
            f'telemetry.exporter = "otlp" needs a package that is not installed ({error.name}):'
            " pip install 'tidegate[telemetry]'"
        ) from None


class OtlpExporter:
    """See `SpanExporter`. Raises TelemetryBroken like `check_extra`."""

    def __init__(self, settings: OtlpSettings) -> None:
        check_extra()
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON

        from tidegate import __version__
        from tidegate.telemetry.given_ids import GivenIds, SpanCollector

        # The pump says once that spans are lost, and the exporter would with each batch.
        self._words = ExporterWords()
        self._words.listen()
        self._exporter: OtelExporter = OTLPSpanExporter(
            endpoint=traces_url(settings.endpoint),
            headers=None if settings.headers is None else dict(settings.headers),
            timeout=settings.timeout_s,
        )
        self._ids = GivenIds()
        self._collector = SpanCollector()
        provider = TracerProvider(
            sampler=ALWAYS_ON, resource=_resource(settings), id_generator=self._ids, shutdown_on_exit=False
        )
        provider.add_span_processor(self._collector)
        self._tracer = provider.get_tracer("tidegate", __version__)

    def export(self, requests: list[TracedSpans]) -> str | None:
        """See `SpanExporter.export`."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        for request in requests:
            for span in request.spans:
                self._make(request, span)
        spans = self._collector.take()
        self._words.take()
        if not spans or self._exporter.export(spans) is SpanExportResult.SUCCESS:
            return None
        return self._words.take() or "the collector did not take them"

    def close(self) -> None:
        """See `SpanExporter.close`."""
        self._exporter.shutdown()
        self._words.stop()

    def _make(self, request: TracedSpans, span: Span) -> None:
        from opentelemetry import trace as api

        self._ids.set(request.trace.trace_id, span.span_id)
        kinds = {SpanKind.SERVER: api.SpanKind.SERVER, SpanKind.INTERNAL: api.SpanKind.INTERNAL}
        made = self._tracer.start_span(
            span.name,
            context=_context_of(request, span),
            kind=kinds[span.kind],
            attributes=span.attributes,
            start_time=round(span.start * _NANOSECONDS),
        )
        if span.error is not None:
            made.set_status(api.Status(api.StatusCode.ERROR, span.error))
        made.end(round(span.end * _NANOSECONDS))


def traces_url(endpoint: str | None) -> str | None:
    """Returns where spans are posted to; a collector's address gets OTLP's usual path."""
    if endpoint is None or endpoint.endswith(TRACES_PATH):
        return endpoint
    return endpoint.rstrip("/") + TRACES_PATH


def _context_of(request: TracedSpans, span: Span) -> "Context":
    """The place below which a span begins; a root has an empty one, so that nothing of the thread is taken."""
    from opentelemetry import trace as api
    from opentelemetry.context import Context

    if span.parent_id is None:
        return Context()
    trace = request.trace
    parent = api.SpanContext(
        int(trace.trace_id, 16),
        int(span.parent_id, 16),
        is_remote=span.kind is SpanKind.SERVER,
        trace_flags=api.TraceFlags(trace.flags | SAMPLED),
        trace_state=api.TraceState.from_header([trace.state]) if trace.state else None,
    )
    return api.set_span_in_context(api.NonRecordingSpan(parent), Context())


def _resource(settings: OtlpSettings) -> "Resource":
    """Our name for the service gives way to `OTEL_SERVICE_NAME` and the like, and to the settings'."""
    from opentelemetry.sdk.resources import Resource

    given = {} if settings.service_name is None else {"service.name": settings.service_name}
    found = Resource.create({**settings.resource, **given})
    if str(found.attributes.get("service.name", "")).startswith("unknown_service"):
        return found.merge(Resource({"service.name": DEFAULT_SERVICE}))
    return found
