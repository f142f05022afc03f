"""One case of the HTML report: what it asks, why, clauses, faults, how to see it by hand, what came back. Pure."""

from collections.abc import Iterator, Sequence

from tidegate.conformance.reports.document import CaseDocument, CheckDocument, FaultDocument
from tidegate.conformance.reports.html_case_picture import draw_case
from tidegate.conformance.reports.html_transcript import anchor_of, render_passed, render_transcript
from tidegate.conformance.reports.page_room import PageRoom, choose_transcripts
from tidegate.conformance.reports.words import SIGNS, place_of, tell_confidence
from tidegate.reporting.markup import Markup, Part, joined, prose, tag
from tidegate.reporting.numbers import spell_time


def render_case(case: CaseDocument, room: PageRoom) -> Markup:
    """Returns the case, closed."""
    badge = tag("span", f"{SIGNS[case.outcome]} {case.outcome}", class_=f"badge {case.outcome}")
    head = [badge, tag("span", prose(case.title), class_="title"), tag("code", case.id, class_="id")]
    if case.outcome == "fail":
        head.append(tag("span", case.severity, class_="severity"))
    return tag(
        "details",
        tag("summary", *head),
        tag("div", *_body(case, room), class_="body"),
        class_=f"case {case.outcome}",
        id=case.id,
        data_severity=case.severity,
    )


def _body(case: CaseDocument, room: PageRoom) -> list[Part]:
    shown = choose_transcripts(case)
    places = [_seen_in(case, fault, shown) for fault in case.faults]
    return [
        _faults(case, places),
        tag("p", tag("strong", "Why not: "), case.reason, class_="reason") if case.reason else None,
        _facts(case),
        _by_hand(case),
        tag("h4", "What came back") if shown else None,
        draw_case(case),
        *_exchanges(case, shown, places, room),
    ]


def _exchanges(case: CaseDocument, shown: Sequence[int], places: Sequence[int | None], room: PageRoom) -> list[Markup]:
    if case.outcome == "pass":
        return [render_passed(case, number) for number in shown]
    left = case.num_exchanges - len(shown)
    note = f"{left} of {case.num_exchanges} exchanges are left out"
    parts = [tag("p", note, class_="note")] if left and shown else []
    parts += [render_transcript(case, number, _events_of(case, places, number), room) for number in shown]
    return parts


def _seen_in(case: CaseDocument, fault: FaultDocument, shown: Sequence[int]) -> int | None:
    """Position of the transcript that shows a fault: of the last run, which is the one that failed."""
    found = None
    for number in shown:
        if (case.transcripts[number].ask, case.transcripts[number].copy) == (fault.ask, fault.copy):
            found = number
    return found


def _events_of(case: CaseDocument, places: Sequence[int | None], number: int) -> frozenset[int]:
    """Indices of the events of a transcript that faults name."""
    pairs = zip(case.faults, places, strict=True)
    return frozenset(fault.event for fault, place in pairs if place == number and fault.event is not None)


def _faults(case: CaseDocument, places: Sequence[int | None]) -> Markup | None:
    if not case.faults:
        return None
    pairs = zip(case.faults, places, strict=True)
    items = [tag("li", _link_of(case, fault, place), " ", fault.says) for fault, place in pairs]
    if case.num_faults > len(case.faults):
        items.append(tag("li", f"and {case.num_faults - len(case.faults)} more of the same run"))
    return joined((tag("h4", "What is wrong"), tag("ul", *items, class_="faults")))


def _link_of(case: CaseDocument, fault: FaultDocument, place: int | None) -> Markup:
    label = tag("span", place_of(case, fault), class_="where")
    if place is None:
        return label
    anchor = anchor_of(case, place)
    if any(event.index == fault.event for event in case.transcripts[place].events):
        anchor += f"-e{fault.event}"
    return tag("a", label, href=f"#{anchor}")


def _facts(case: CaseDocument) -> Markup:
    verb = "Broken clause" if case.outcome == "fail" else "Clause"
    clauses = [
        tag("p", prose(clause.text), " ", tag("span", f"({clause.source}; {clause.id})", class_="source"))
        for clause in case.clauses
    ]
    weight = [case.severity, f"{case.profile} profile"]
    weight += [f"needs {', '.join(name.replace('_', ' ') for name in case.needs)}"] if case.needs else []
    weight += [f"took {spell_time(case.duration_s)}"] if case.transcripts else []
    return tag(
        "dl",
        *_fact("Why", prose(case.why)),
        *_fact(verb if len(clauses) == 1 else f"{verb}s", *clauses),
        *_fact("Asks", tag("ul", *_asks(case))),
        *_fact("Must hold", tag("ul", *_checks(case))),
        *_fact("Weight", "; ".join(filter(None, (*weight, tell_confidence(case))))),
    )


def _fact(name: str, *parts: Part) -> tuple[Markup, ...]:
    return (tag("dt", name), tag("dd", *parts)) if any(parts) else ()


def _asks(case: CaseDocument) -> Iterator[Markup]:
    """Asks of one route that are sent alike are told together, with their names."""
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for ask in case.asks:
        groups.setdefault((f"{ask.method} {ask.path}", ask.says), []).append(ask.name)
    for (route, says), names in groups.items():
        called = f": {', '.join(names)}" if len(case.asks) > 1 else None
        yield tag("li", tag("code", route), called, *(prose(f"; {words}") for words in says))


def _checks(case: CaseDocument) -> Iterator[Markup]:
    """An assertion that holds of several asks is told once, with their names."""
    groups: dict[tuple[str, str], list[CheckDocument]] = {}
    for check in case.checks:
        groups.setdefault((check.says or check.name, check.args), []).append(check)
    for (says, args), checks in groups.items():
        of = f" Of {'; '.join(', '.join(check.on) for check in checks)}." if len(case.asks) > 1 else None
        yield tag("li", prose(says), of, *((" ", tag("code", args)) if args else ()))


def _by_hand(case: CaseDocument) -> Markup | None:
    if not case.by_hand:
        return None
    commands = [tag("pre", command, class_="command") for command in case.by_hand]
    return joined((tag("h4", "See it by hand"), *commands))
