"""When each exchange of a case took place, in the time of its last run, also where its bytes are left out. Pure."""

from tidegate.conformance.reports.document import SpanDocument
from tidegate.conformance.reports.endings import ENDINGS
from tidegate.conformance.running.run_report import Result
from tidegate.conformance.wire.exchange import Exchange

MAX_SPANS = 64
"""Of one case; more are counted."""


def show_spans(result: Result) -> tuple[tuple[SpanDocument, ...], int]:
    """Returns the exchanges of the last run in the order of the case's asks, at most MAX_SPANS, and their number."""
    evidence = result.runs[-1] if result.runs else {}
    found = [(ask.wave, exchange) for ask in result.case.asks for exchange in evidence.get(ask.name, ())]
    return tuple(_span(wave, exchange) for wave, exchange in found[:MAX_SPANS]), len(found)


def _span(wave: int, exchange: Exchange) -> SpanDocument:
    events = exchange.events
    firsts = [timed.at_s for timed in events[:1]] or [piece.at_s for piece in exchange.pieces[:1]]
    return SpanDocument(
        ask=exchange.ask,
        copy=exchange.copy,
        wave=wave,
        sent_at_s=round(exchange.sent_at_s, 6),
        first_after_s=round(firsts[0], 6) if firsts else None,
        duration_s=round(exchange.duration_s, 6),
        num_events=len(events),
        status=exchange.status,
        ending=ENDINGS[exchange.ending],
    )
