"""MemoryExporter: spans that stay here, for tests."""

import threading

from tidegate.observability.span import Span, TracedSpans


class MemoryExporter:
    """See `SpanExporter`. While `is_away` nothing arrives; an export waits for `gate` and raises `fault`."""

    def __init__(self) -> None:
        self.requests: list[TracedSpans] = []
        self.num_exports = 0
        self.is_away = False
        self.is_closed = False
        self.fault: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def export(self, requests: list[TracedSpans]) -> str | None:
        self.num_exports += 1
        self.gate.wait()
        if self.fault is not None:
            raise self.fault
        if self.is_away:
            return "nobody is there"
        self.requests += requests
        return None

    def close(self) -> None:
        self.is_closed = True
        self.gate.set()

    @property
    def spans(self) -> list[Span]:
        """All that arrived, in order."""
        return [span for request in self.requests for span in request.spans]
