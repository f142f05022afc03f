"""One exchange on the page: moments, the events of a stream, and the bytes of request and response. Pure."""

import base64
from collections.abc import Sequence

from tidegate.conformance.reports.document import CaseDocument, EventDocument, Shown, Transcript
from tidegate.conformance.reports.html_timeline import draw_timeline, find_moments, tell_moments
from tidegate.conformance.reports.page_room import MAX_PASSED_BYTES, PageRoom, choose_events
from tidegate.conformance.reports.shown_bytes import shorten
from tidegate.reporting.markup import Markup, joined, tag, text
from tidegate.reporting.numbers import spell_time

_OPEN = 4
"""Exchanges of the last run that are open at once."""


def anchor_of(case: CaseDocument, number: int) -> str:
    """Returns the id of the element of a case's transcript."""
    return f"{case.id}-t{number}"


def render_passed(case: CaseDocument, number: int) -> Markup:
    """Returns the beginning of the answer of a case that passed, and when it came."""
    transcript = case.transcripts[number]
    moments = tell_moments(transcript, find_moments(transcript))
    words = [_title(case, transcript), *(f"{name} {value}" for name, value in moments)]
    if case.num_exchanges > 1:
        words.append(f"{case.num_exchanges - 1} more exchanges")
    return joined((tag("p", "; ".join(words), class_="note"), _bytes_of(transcript.response, MAX_PASSED_BYTES)))


def render_transcript(case: CaseDocument, number: int, faults: frozenset[int], room: PageRoom) -> Markup:
    """Returns the transcript at a position. `faults`: indices of events that faults name."""
    transcript = case.transcripts[number]
    anchor = anchor_of(case, number)
    moments = find_moments(transcript)
    told = [tag("span", tag("b", name), f" {value}") for name, value in tell_moments(transcript, moments)]
    is_last = transcript.run == max(other.run for other in case.transcripts)
    return tag(
        "details",
        tag("summary", tag("code", f"{transcript.method} {transcript.url}"), f" {_title(case, transcript)}"),
        draw_timeline(transcript, faults) if _is_drawn(case, transcript) else None,
        tag("p", *told, class_="moments"),
        _framing(transcript.framing),
        _events(transcript, anchor, faults, moments.first_token, room),
        _raw("Request as sent", transcript.request, room.request, is_open=False),
        _raw("Response as received", transcript.response, room.response(transcript), is_open=not transcript.events),
        class_="transcript",
        id=anchor,
        open=is_last and number < _OPEN,
    )


def _is_drawn(case: CaseDocument, transcript: Transcript) -> bool:
    """What a fault names, and what is the only exchange of a case that did not pass."""
    named = any((fault.ask, fault.copy) == (transcript.ask, transcript.copy) for fault in case.faults)
    return named or (case.outcome != "pass" and len(case.transcripts) == 1)


def _title(case: CaseDocument, transcript: Transcript) -> str:
    status = "no response" if transcript.status is None else f"status {transcript.status}"
    words = [transcript.ask, f"copy {transcript.copy}" if transcript.copy else "", status]
    words += [f"run {transcript.run + 1}"] if case.num_runs > 1 else []
    return ", ".join(word for word in words if word)


def _framing(findings: Sequence[str]) -> Markup | None:
    if not findings:
        return None
    items = [tag("li", finding) for finding in findings]
    return joined((tag("p", "Framing that only lenient readers forgive:", class_="note"), tag("ul", *items)))


def _events(
    transcript: Transcript, anchor: str, faults: frozenset[int], first: int | None, room: PageRoom
) -> Markup | None:
    if not transcript.events:
        return None
    rows: list[Markup] = []
    before_s = 0.0
    before = -1
    shown = choose_events(transcript.events, faults | {transcript.events[0].index}, room.events)
    for event in shown:
        if event.index != before + 1:
            rows.append(_gap_row(event.index - before - 1))
        sign = "✕" if event.index in faults else "first token" if event.index == first else ""
        rows.append(_event_row(event, event.at_s - before_s, f"{anchor}-e{event.index}", sign))
        before, before_s = event.index, event.at_s
    if before < transcript.num_events - 1:
        rows.append(_gap_row(transcript.num_events - 1 - before))
    columns = tag("tr", *(tag("th", name) for name in ("event", "at", "after", "data")))
    summary = tag("summary", f"{transcript.num_events} events")
    table = tag("table", tag("thead", columns), tag("tbody", *rows), class_="events")
    return tag("details", summary, tag("div", table, class_="scroll"), open=bool(faults))


def _gap_row(number: int) -> Markup:
    return tag("tr", tag("td", f"{number} events are left out here", colspan="4", class_="cut"))


def _event_row(event: EventDocument, gap_s: float, anchor: str, sign: str) -> Markup:
    cells = (
        f"{event.index} {sign}".rstrip(),
        spell_time(event.at_s),
        f"+{spell_time(gap_s)}",
        joined((tag("code", event.data), " … cut" if event.is_cut else None)),
    )
    kind = "bad" if sign == "✕" else "first" if sign else None
    return tag("tr", *(tag("td", cell) for cell in cells), id=anchor, class_=kind)


def _raw(name: str, shown: Shown, max_bytes: int, *, is_open: bool) -> Markup:
    size = f"{shown.num_bytes} byte{'s' * (shown.num_bytes != 1)}"
    return tag("details", tag("summary", f"{name}, {size}"), _bytes_of(shown, max_bytes), open=is_open)


def _bytes_of(shown: Shown, max_bytes: int) -> Markup:
    """Bytes that are not UTF-8 are shown as hexadecimal beside what of them is ASCII."""
    shown = shorten(shown, max_bytes)
    if shown.encoding == "base64":
        start, end = (text(_dump(base64.b64decode(part))) for part in (shown.start, shown.end))
    else:
        start, end = _message(shown.start), text(shown.end)
    middle = tag("span", f"\n… {shown.num_cut} bytes are left out here …\n", class_="cut") if shown.num_cut else None
    return tag("pre", start, middle, end)


def _message(content: str) -> Markup:
    """In a head of HTTP, lines end with CRLF: only those that do not are marked. In a body everything unseen is."""
    head, blank, body = content.partition("\r\n\r\n")
    head = head if blank else head.removesuffix("\r")
    lines = [text(line).replace("\n", "<i>\\n</i>\n") for line in head.split("\r\n")]
    return Markup("\n".join(lines) + ("\n\n" if blank else "") + text(body))


def _dump(data: bytes) -> str:
    lines = []
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        seen = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"{start:06x}  {row.hex(' '):<47}  {seen}")
    return "\n".join(lines)
