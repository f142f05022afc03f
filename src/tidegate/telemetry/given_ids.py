"""What OpenTelemetry's tracer asks for ids and hands its spans to, where both are ours. Needs its packages."""

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator


class GivenIds(IdGenerator):
    """Gives the ids that were set last."""

    def __init__(self) -> None:
        self._trace_id = self._span_id = 1

    def set(self, trace_id: str, span_id: str) -> None:
        """Takes the ids of the span that is made next, as hexadecimal digits."""
        self._trace_id, self._span_id = int(trace_id, 16), int(span_id, 16)

    def generate_span_id(self) -> int:
        return self._span_id

    def generate_trace_id(self) -> int:
        return self._trace_id


class SpanCollector(SpanProcessor):
    """Keeps spans that have ended until they are taken."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self._spans.append(span)

    def take(self) -> list[ReadableSpan]:
        """Returns what has ended since the last call."""
        spans, self._spans = self._spans, []
        return spans
