"""All exchanges of a case on one time axis, as SVG: a bar each, from sending to its end; copies side by side. Pure.

A bar is pale while nothing has come and full from the first event on. A line across marks where a later wave begins.
"""

from collections.abc import Sequence
from itertools import groupby, pairwise

from tidegate.conformance.reports.document import CaseDocument, SpanDocument
from tidegate.conformance.reports.endings import LABELS
from tidegate.conformance.reports.svg_axis import band, draw_axis, percent, unit
from tidegate.reporting.markup import Markup, tag
from tidegate.reporting.numbers import spell_time

_TOLD_ROW = 27
_THIN_ROW = 9
_TOP = 6
LEGEND = (
    "A bar is an exchange: pale while nothing came, full from the first event or byte on, with a stroke at its end "
    "where we leave; a dashed line begins the next wave of requests."
)
_LEAST = 0.002
"""Of the axis: a bar of no length is still seen."""


def draw_case(case: CaseDocument) -> Markup | None:
    """Returns the drawing; None where one exchange came after the other: words tell as much."""
    if not _are_together(case.spans):
        return None
    end_s = max(max(_end_of(span) for span in case.spans), 1e-6)
    bad = {(fault.ask, fault.copy) for fault in case.faults}
    bars: dict[str, list[str]] = {}
    labels: list[Markup] = []
    waves: dict[int, float] = {}
    y = _TOP
    for _, copies in groupby(case.spans, key=lambda span: span.ask):
        group = list(copies)
        for position, span in enumerate(group):
            waves[span.wave] = min(waves.get(span.wave, span.sent_at_s), span.sent_at_s)
            is_bad = (span.ask, span.copy) in bad
            is_told = position == 0 or is_bad
            if is_told:
                labels.append(_label(span, group, end_s, y + 11, is_bad=is_bad))
            y += 15 if is_told else 0
            _add_bars(bars, span, end_s, y + 4, is_bad=is_bad)
            y += _TOLD_ROW - 15 if is_told else _THIN_ROW
    base = y + 8
    lines = "".join(f"M{unit(at_s / end_s)} 0V{base}" for _, at_s in sorted(waves.items())[1:])
    told = f"{len(case.spans)} exchanges over {spell_time(end_s)}"
    svg = tag(
        "svg",
        band(base, [("wave", lines), *((kind, "".join(parts)) for kind, parts in bars.items())]),
        *labels,
        draw_axis(end_s, base),
        class_="timeline",
        height=base + 22,
        role="img",
        aria_label=f"Requests over time: {told}",
    )
    num_left = case.num_spans - len(case.spans)
    note = f"{num_left} of {case.num_spans} exchanges are not drawn"
    return tag("figure", svg, tag("figcaption", note, class_="note") if num_left else None)


def _are_together(spans: Sequence[SpanDocument]) -> bool:
    ordered = sorted(spans, key=lambda span: span.sent_at_s)
    return any(later.sent_at_s < _end_of(earlier) for earlier, later in pairwise(ordered))


def _end_of(span: SpanDocument) -> float:
    return span.sent_at_s + span.duration_s


def _add_bars(bars: dict[str, list[str]], span: SpanDocument, end_s: float, y: int, *, is_bad: bool) -> None:
    start, end = span.sent_at_s / end_s, _end_of(span) / end_s
    first = end if span.first_after_s is None else (span.sent_at_s + span.first_after_s) / end_s
    kind = " bad" if is_bad or LABELS[span.ending].startswith("✕") else ""
    bars.setdefault(f"wait{kind}", []).append(f"M{unit(start)} {y}H{unit(first)}")
    if span.first_after_s is not None:
        bars.setdefault(f"flow{kind}", []).append(f"M{unit(first)} {y}H{unit(max(end, first + _LEAST))}")
    if span.ending == "LEFT":
        bars.setdefault("left", []).append(f"M{unit(end + _LEAST)} {y - 4}v8")


def _label(span: SpanDocument, group: Sequence[SpanDocument], end_s: float, y: int, *, is_bad: bool) -> Markup:
    """What the bar below says, in words; from the middle on it grows to the left."""
    start, end = span.sent_at_s / end_s, _end_of(span) / end_s
    is_late = start > 0.5
    words = f"{_name(span, group)}: {_tell(span)}"
    return tag(
        "text",
        f"✕ {words}" if is_bad else words,
        x=percent(end if is_late else start),
        y=y,
        text_anchor="end" if is_late else None,
        class_="label bad" if is_bad or LABELS[span.ending].startswith("✕") else None,
    )


def _name(span: SpanDocument, group: Sequence[SpanDocument]) -> str:
    if len(group) == 1:
        return span.ask
    return f"{span.ask}, {len(group)} copies" if span is group[0] else f"{span.ask}, copy {span.copy}"


def _tell(span: SpanDocument) -> str:
    status = "no response" if span.status is None else str(span.status)
    first = "" if span.first_after_s is None else f", first after {spell_time(span.first_after_s)}"
    events = f", {span.num_events} events" if span.num_events else ""
    return f"{status}{first}{events}, {LABELS[span.ending]} after {spell_time(span.duration_s)}"
