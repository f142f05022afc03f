"""All exchanges of a case on one time axis, as SVG: a bar each, from sending to its end; copies side by side. Pure.

A bar is pale while nothing has come and full from the first event on. A line across marks where a later wave begins.
"""

from collections.abc import Sequence
from itertools import groupby

from tidegate.conformance.reports.document import CaseDocument, SpanDocument
from tidegate.conformance.reports.endings import LABELS
from tidegate.conformance.reports.html_markup import Markup, tag
from tidegate.conformance.reports.html_timeline import draw_ticks, percent, spell_time

_TOLD_ROW = 27
_THIN_ROW = 9
_TOP = 6


def draw_case(case: CaseDocument) -> Markup | None:
    """Returns the drawing with its legend; None for fewer than two exchanges: words tell as much."""
    if len(case.spans) < 2:
        return None
    end_s = max(max(span.sent_at_s + span.duration_s for span in case.spans), 1e-6)
    bad = {(fault.ask, fault.copy) for fault in case.faults}
    rows: list[Markup] = []
    waves: dict[int, float] = {}
    y = _TOP
    for _, copies in groupby(case.spans, key=lambda span: span.ask):
        group = list(copies)
        for position, span in enumerate(group):
            waves[span.wave] = min(waves.get(span.wave, span.sent_at_s), span.sent_at_s)
            is_bad = (span.ask, span.copy) in bad
            is_told = position == 0 or is_bad
            rows.append(_row(span, group, end_s, y, is_told=is_told, is_bad=is_bad))
            y += _TOLD_ROW if is_told else _THIN_ROW
    base = y + 8
    lines = [_wave_line(at_s / end_s, base) for wave, at_s in sorted(waves.items())[1:]]
    axis = tag("line", x1="0", x2="100%", y1=str(base), y2=str(base), class_="axis")
    told = f"{len(case.spans)} exchanges over {spell_time(end_s)}"
    svg = tag(
        "svg",
        *lines,
        *rows,
        axis,
        *draw_ticks(end_s, base),
        class_="timeline picture",
        height=str(base + 22),
        role="img",
        aria_label=f"When each request was sent and answered: {told}",
    )
    return tag("figure", svg, _legend(case, has_waves=len(waves) > 1))


def _legend(case: CaseDocument, *, has_waves: bool) -> Markup:
    parts = ["pale: sent, and nothing came yet; full: from the first event or byte on"]
    if any(span.ending == "LEFT" for span in case.spans):
        parts.append("◁ we leave")
    if has_waves:
        parts.append("dashed line: the next wave of requests")
    if case.num_spans > len(case.spans):
        parts.append(f"{case.num_spans - len(case.spans)} of {case.num_spans} exchanges are not drawn")
    return tag("figcaption", "; ".join(parts), class_="note")


def _wave_line(share: float, base: int) -> Markup:
    place = percent(share)
    return tag("line", x1=place, x2=place, y1="0", y2=str(base), class_="wave")


def _row(
    span: SpanDocument, group: Sequence[SpanDocument], end_s: float, y: int, *, is_told: bool, is_bad: bool
) -> Markup:
    start, end = span.sent_at_s / end_s, (span.sent_at_s + span.duration_s) / end_s
    first = end if span.first_after_s is None else (span.sent_at_s + span.first_after_s) / end_s
    bar_y = y + 16 if is_told else y + 1
    kind = "bad" if is_bad or LABELS[span.ending].startswith("✕") else ""
    parts = [_bar(start, first, bar_y, f"w {kind}"), _bar(first, end, bar_y, f"f {kind}")]
    if not is_told:
        parts.append(tag("title", f"{_name(span, len(group) > 1)}: {_tell(span)}"))
    if span.ending == "LEFT":
        parts.append(tag("text", "◁", x=percent(end), y=str(bar_y + 7), class_="label left"))
    if is_told:
        is_late = start > 0.5
        label = ("✕ " if is_bad else "") + _label(span, group)
        place = percent(end if is_late else start)
        side = "end" if is_late else None
        parts.append(tag("text", label, x=place, y=str(y + 11), text_anchor=side, class_=f"label {kind}".rstrip()))
    return tag("g", *parts)


def _bar(start: float, end: float, y: int, kind: str) -> Markup:
    width = f"{max(98 * (end - start), 0.0):.2f}%"
    return tag("rect", x=percent(start), y=str(y), width=width, height="6", class_=kind.rstrip())


def _name(span: SpanDocument, has_copies: bool) -> str:
    return f"{span.ask}, copy {span.copy}" if has_copies else span.ask


def _label(span: SpanDocument, group: Sequence[SpanDocument]) -> str:
    name = f"{span.ask}, {len(group)} copies" if len(group) > 1 and span is group[0] else _name(span, len(group) > 1)
    return f"{name}: {_tell(span)}"


def _tell(span: SpanDocument) -> str:
    status = "no response" if span.status is None else str(span.status)
    first = "" if span.first_after_s is None else f", first after {spell_time(span.first_after_s)}"
    events = f", {span.num_events} events" if span.num_events else ""
    return f"{status}{first}{events}, {LABELS[span.ending]} after {spell_time(span.duration_s)}"
