"""Span: one stretch of a request's life, as exporters are given it."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from tidegate.observability.request_trace import RequestTrace

Value = str | int | float | bool | tuple[str, ...]


class SpanKind(Enum):
    SERVER = "server"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Span:
    """`start` and `end` are instants of the wall clock, in seconds since 1970. `parent_id` is None for a root.

    `error` is the code of what went wrong on our side; None where nothing did.
    """

    name: str
    span_id: str
    parent_id: str | None
    kind: SpanKind
    start: float
    end: float
    attributes: dict[str, Value] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TracedSpans:
    """All spans of one request, the outermost first."""

    trace: RequestTrace
    spans: tuple[Span, ...]


class SpanExporter(Protocol):
    """Where spans go. Called on a thread of its own, never on an event loop."""

    def export(self, requests: list[TracedSpans]) -> str | None:
        """Sends the spans. Returns why they did not arrive, in words for operators; None when they did. May block
        within its own time limit, and may raise.
        """
        ...

    def close(self) -> None:
        """Ends; an export that is under way may fail."""
        ...
