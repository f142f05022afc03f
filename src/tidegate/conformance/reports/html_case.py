"""One case of the HTML report: what it asks, why, the clauses, the faults, how to see it by hand, the transcripts."""

import base64
from collections.abc import Sequence

from tidegate.conformance.reports.document import (
    AskDocument,
    CaseDocument,
    EventDocument,
    FaultDocument,
    Shown,
    Transcript,
)
from tidegate.conformance.reports.html_case_picture import draw_case
from tidegate.conformance.reports.html_markup import Markup, Part, joined, prose, tag, text
from tidegate.conformance.reports.html_timeline import draw_timeline, find_moments, spell_time, tell_moments
from tidegate.conformance.reports.words import SIGNS, place_of


def render_case(case: CaseDocument) -> Markup:
    """Returns the case, closed."""
    badge = tag("span", SIGNS[case.outcome], " ", case.outcome, class_=f"badge {case.outcome}")
    head = [badge, tag("span", prose(case.title), class_="title"), tag("code", case.id, class_="id")]
    if case.outcome == "fail":
        head.append(tag("span", case.severity, class_="severity"))
    sought = " ".join((case.id, case.title, case.why, case.reason, *(fault.says for fault in case.faults))).lower()
    return tag(
        "details",
        tag("summary", *head),
        tag("div", *_body(case), class_="body"),
        class_=f"case {case.outcome}",
        id=case.id,
        data_outcome=case.outcome,
        data_severity=case.severity,
        data_area=case.area,
        data_text=sought[:2000],
    )


def _body(case: CaseDocument) -> list[Part]:
    return [
        _faults(case),
        tag("p", tag("strong", "Why not: "), case.reason, class_="reason") if case.reason else None,
        _facts(case),
        _by_hand(case),
        tag("h4", "What came back") if case.transcripts else None,
        draw_case(case),
        tag("p", "; ".join(case.cut), ".", class_="note") if case.cut else None,
        *(_transcript(case, number, transcript) for number, transcript in enumerate(case.transcripts)),
    ]


def _faults(case: CaseDocument) -> Markup | None:
    if not case.faults:
        return None
    items = [tag("li", _link_of(case, fault), fault.says) for fault in case.faults]
    if case.num_faults > len(case.faults):
        items.append(tag("li", f"and {case.num_faults - len(case.faults)} more of the same run"))
    return joined((tag("h4", "What is wrong"), tag("ul", *items, class_="faults")))


def _link_of(case: CaseDocument, fault: FaultDocument) -> Markup:
    number = _seen_in(case, fault)
    label = tag("span", place_of(case, fault), class_="where")
    if number is None:
        return joined((label, " "))
    anchor = _anchor(case, number)
    if fault.event is not None and any(event.index == fault.event for event in case.transcripts[number].events):
        anchor += f"-e{fault.event}"
    return joined((tag("a", label, href=f"#{anchor}"), " "))


def _seen_in(case: CaseDocument, fault: FaultDocument) -> int | None:
    """Position of the transcript that shows a fault: of the last run, which is the one that failed."""
    found = None
    for number, transcript in enumerate(case.transcripts):
        if (transcript.ask, transcript.copy) == (fault.ask, fault.copy):
            found = number
    return found


def _anchor(case: CaseDocument, number: int) -> str:
    return f"{case.id}-t{number}"


def _facts(case: CaseDocument) -> Markup:
    verb = "Broken clause" if case.outcome == "fail" else "Clause"
    clauses = [
        tag("p", prose(clause.text), " ", tag("span", f"({clause.source}; {clause.id})", class_="source"))
        for clause in case.clauses
    ]
    asks = [tag("li", *_ask(ask, is_only=len(case.asks) == 1)) for ask in case.asks]
    checks = [_check(check.says or check.name, check.args) for check in case.checks]
    runs = f"{case.num_runs} runs, {case.num_conclusive} of which told something; " if case.num_runs > 1 else ""
    return tag(
        "dl",
        *_fact("Why it matters", prose(case.why)),
        *_fact(verb if len(clauses) == 1 else f"{verb}s", *clauses),
        *_fact("Asks", tag("ul", *asks)),
        *_fact("Must hold", tag("ul", *checks)),
        *_fact("Weight", f"{case.severity}; promised by the {case.profile} profile"),
        *_fact("Needs", ", ".join(name.replace("_", " ") for name in case.needs)),
        *_fact("Took", f"{runs}{spell_time(case.duration_s)}" if case.transcripts else None),
    )


def _ask(ask: AskDocument, *, is_only: bool) -> list[Part]:
    name = None if is_only else f", called {ask.name}"
    return [tag("code", f"{ask.method} {ask.path}"), name, *(f"; {says}" for says in ask.says)]


def _check(says: str, args: str) -> Markup:
    return tag("li", prose(says), *((" ", tag("code", args)) if args else ()))


def _fact(name: str, *parts: Part) -> tuple[Markup, ...]:
    return (tag("dt", name), tag("dd", *parts)) if any(parts) else ()


def _by_hand(case: CaseDocument) -> Markup | None:
    if not case.by_hand:
        return None
    commands = [
        tag(
            "div",
            tag("button", "Copy", type="button", class_="copy", aria_label="Copy the command"),
            _pre(command, "Command"),
            class_="command",
        )
        for command in case.by_hand
    ]
    return joined((tag("h4", "See it by hand"), *commands))


def _pre(content: str | Markup, label: str) -> Markup:
    return tag("pre", content, tabindex="0", role="region", aria_label=label)


def _transcript(case: CaseDocument, number: int, transcript: Transcript) -> Markup:
    anchor = _anchor(case, number)
    faults = frozenset(
        fault.event for fault in case.faults if fault.event is not None and _seen_in(case, fault) == number
    )
    is_last = transcript.run == max(other.run for other in case.transcripts)
    status = "no response" if transcript.status is None else f"status {transcript.status}"
    words = [transcript.ask, f"copy {transcript.copy}" if transcript.copy else "", status]
    words += [f"run {transcript.run + 1}"] if case.num_runs > 1 else []
    title = ", ".join(word for word in words if word)
    moments = find_moments(transcript)
    told = [
        tag("span", tag("b", name), " ", value, class_="moment") for name, value in tell_moments(transcript, moments)
    ]
    return tag(
        "details",
        tag("summary", tag("code", f"{transcript.method} {transcript.url}"), f" {title}"),
        None if case.outcome == "pass" else draw_timeline(transcript, anchor=anchor, faults=faults),
        tag("p", *told, class_="moments"),
        _framing(transcript.framing),
        _events(transcript, anchor, faults, moments.first_token),
        _raw("Request as sent", transcript.request, is_open=False),
        _raw("Response as received", transcript.response, is_open=not transcript.events),
        class_="transcript",
        id=anchor,
        open=is_last and number < 4,
    )


def _framing(findings: Sequence[str]) -> Markup | None:
    if not findings:
        return None
    items = [tag("li", finding) for finding in findings]
    return joined((tag("p", "Framing that only lenient readers forgive:", class_="note"), tag("ul", *items)))


def _events(transcript: Transcript, anchor: str, faults: frozenset[int], first: int | None) -> Markup | None:
    if not transcript.events:
        return None
    rows: list[Markup] = []
    before_s = 0.0
    before = -1
    for event in transcript.events:
        if event.index != before + 1:
            rows.append(tag("tr", tag("td", f"{event.index - before - 1} events are left out here", colspan="4")))
        sign = "✕" if event.index in faults else "first token" if event.index == first else ""
        rows.append(_event_row(event, event.at_s - before_s, f"{anchor}-e{event.index}", sign))
        before, before_s = event.index, event.at_s
    columns = tag("tr", *(tag("th", name, scope="col") for name in ("event", "at", "after", "data")))
    summary = tag("summary", f"{transcript.num_events} events")
    table = tag("table", tag("thead", columns), tag("tbody", *rows), class_="events")
    return tag("details", summary, tag("div", table, class_="scroll"), open=bool(faults))


def _event_row(event: EventDocument, gap_s: float, anchor: str, sign: str) -> Markup:
    data = joined((tag("code", event.data), " … cut" if event.is_cut else None))
    cells: Sequence[Part] = (
        joined((str(event.index), f" {sign}" if sign else None)),
        spell_time(event.at_s),
        f"+{spell_time(gap_s)}",
        data,
    )
    kind = "bad" if sign == "✕" else "first" if sign else None
    return tag("tr", *(tag("td", cell) for cell in cells), id=anchor, class_=kind)


def _raw(name: str, shown: Shown, *, is_open: bool) -> Markup:
    """Bytes that are not UTF-8 are shown as hexadecimal beside what of them is ASCII."""
    if shown.encoding == "base64":
        start, end = (_dump(base64.b64decode(part)) for part in (shown.start, shown.end))
    else:
        start, end = shown.start, shown.end
    middle = tag("span", f"\n… {shown.num_cut} bytes are left out here …\n", class_="cut") if shown.num_cut else None
    content = joined((text(start), middle, text(end)))
    size = f"{shown.num_bytes} byte{'s' * (shown.num_bytes != 1)}"
    return tag("details", tag("summary", f"{name}, {size}"), _pre(content, name), open=is_open)


def _dump(data: bytes) -> str:
    lines = []
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        seen = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"{start:06x}  {row.hex(' '):<47}  {seen}")
    return "\n".join(lines)
