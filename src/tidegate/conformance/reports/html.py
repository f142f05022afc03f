"""The report as one HTML file that a person reads: nothing is loaded from elsewhere, and it reads without JavaScript.

Whatever a server sent is escaped by construction (`reporting/markup.py`). Pure.
"""

from collections.abc import Sequence
from importlib import resources

from tidegate.conformance.case import Severity
from tidegate.conformance.reports.document import CaseDocument, Counts, ReportDocument
from tidegate.conformance.reports.html_case import render_case
from tidegate.conformance.reports.html_case_picture import LEGEND
from tidegate.conformance.reports.page_room import MAX_EXCHANGES, UNTOLD, measure_room
from tidegate.conformance.reports.words import SIGNS, first_fault, list_failures, outcomes_of, tell_end, tell_verdict
from tidegate.reporting.markup import Markup, Part, joined, prose, tag
from tidegate.reporting.numbers import spell_time
from tidegate.reporting.page import facts, header, render_page, table

_ASSETS = resources.files("tidegate.conformance.reports") / "assets"
VERDICT_STYLE = _ASSETS.joinpath("verdicts.css").read_text("utf-8")
"""Of pages that count outcomes."""
_STYLE = VERDICT_STYLE + _ASSETS.joinpath("report.css").read_text("utf-8")
_SCRIPT = _ASSETS.joinpath("report.js").read_text("utf-8")

MAX_OPEN_FAILURES = 12
"""Told at once; more are behind a line that opens."""


def render_html(document: ReportDocument) -> str:
    """Returns the page."""
    model = document.server.model or "an unnamed model"
    return render_page(
        f"Conformance of {model} at {document.server.base_url}",
        tag("a", "Skip to the cases", href="#cases", class_="skip"),
        _header(document),
        tag("main", *_main(document)),
        style=_STYLE,
        script=_SCRIPT,
    )


def _header(document: ReportDocument) -> Markup:
    server = document.server
    pairs: list[tuple[str, Part]] = [("Address", server.base_url), ("Model", server.model)]
    pairs += [(name.replace("_", " ").capitalize(), value) for name, value in server.identity.items()]
    pairs += [("Asked", document.started_at.replace("T", " ").replace("Z", " UTC"))]
    pairs += [("Took", spell_time(document.duration_s)), ("Seed", str(document.seed))]
    pairs += [("Suite", f"tidegate conform {document.suite_version}")]
    if server.is_scripted:
        pairs.append(("Engine", "scripted: it plays what a case asks of it"))
    end = tag("p", tell_end(document), class_="stopped") if document.stopped else None
    return header("Conformance report", tell_verdict(document), facts(pairs), end)


def _main(document: ReportDocument) -> Sequence[Part]:
    return (
        _summary(document),
        _failures(document),
        _areas(document),
        _matrix(document),
        _capabilities(document),
        tag("h2", "Cases", id="cases", tabindex="-1"),
        tag("p", f"{_tell_room(document)} {LEGEND}", class_="note"),
        _filter(document),
        tag("p", "No case is like that.", id="none", hidden=True),
        *_cases(document),
    )


def _tell_room(document: ReportDocument) -> str:
    return (
        f"Of a case that fails, this page shows up to {MAX_EXCHANGES} exchanges, {measure_room(document).exchange:,} "
        "bytes of each; of others a glimpse. A JSON report holds more; --record DIR keeps every byte, and --replay DIR "
        "--only CASE --report FILE.html makes a page of one case, with more room for it."
    )


def _summary(document: ReportDocument) -> Markup:
    tiles = [
        tag(
            "li",
            tag("span", SIGNS[outcome], class_="sign", aria_hidden="true"),
            tag("b", str(number)),
            tag("span", outcome),
            class_=outcome,
        )
        for outcome, number in outcomes_of(document.counts).items()
    ]
    return joined((tag("ul", *tiles, class_="counts"), _bar(document.counts, "Outcomes of all cases")))


def _bar(counts: Counts, label: str) -> Markup:
    parts: list[Markup] = []
    at = 0.0
    for outcome, number in outcomes_of(counts).items():
        width = 100 * number / counts.total if counts.total else 0.0
        if number:
            title = tag("title", f"{number} {outcome}")
            parts.append(
                tag("rect", title, x=f"{at:.3f}%", width=f"{width:.3f}%", height="100%", class_=f"bar-{outcome}")
            )
        at += width
    told = ", ".join(f"{number} {outcome}" for outcome, number in outcomes_of(counts).items() if number)
    return tag("svg", *parts, class_="bar", role="img", aria_label=f"{label}: {told or 'none'}")


def _failures(document: ReportDocument) -> Markup | None:
    failed = list_failures(document)
    if not failed:
        return None
    parts = [_failure_table(failed[:MAX_OPEN_FAILURES])]
    if rest := failed[MAX_OPEN_FAILURES:]:
        parts.append(tag("details", tag("summary", f"and {len(rest)} more"), _failure_table(rest), class_="plain"))
    return tag("section", tag("h2", "What fails, worst first"), *parts)


def _failure_table(failed: Sequence[CaseDocument]) -> Markup:
    rows = [
        tag(
            "tr",
            tag("td", tag("span", case.severity, class_="severity")),
            tag("td", tag("a", prose(case.title), href=f"#{case.id}"), tag("span", case.id, class_="id")),
            tag("td", first_fault(case), class_="says"),
            tag("td", *(prose(clause.text) for clause in case.clauses[:1])),
        )
        for case in failed
    ]
    return table(("for a client", "what must be so", "what was seen", "clause"), rows, class_="failures")


def _areas(document: ReportDocument) -> Markup:
    rows = []
    for area in document.areas:
        numbers = [
            tag("td", str(number) if number else "", class_=f"number {outcome if number else ''}")
            for outcome, number in outcomes_of(area.counts).items()
        ]
        name = tag("th", tag("a", area.name.replace("_", " "), href=f"#area-{area.name}"), scope="row")
        bar = tag("td", _bar(area.counts, f"Outcomes of {area.name}"), class_="bar-cell")
        rows.append(tag("tr", name, *numbers, bar))
    heads = [tag("th", f"{SIGNS[outcome]} {outcome}", scope="col", class_="number") for outcome in SIGNS]
    return tag("section", tag("h2", "By area"), table(("area", *heads, None), rows, class_="areas"))


def _matrix(document: ReportDocument) -> Markup:
    rows = []
    for area in document.areas:
        tiles = [
            tag(
                "li",
                tag(
                    "a",
                    case.id.partition(".")[2],
                    href=f"#{case.id}",
                    class_=f"tile {case.outcome}",
                ),
            )
            for case in document.cases
            if case.area == area.name
        ]
        rows.append(tag("div", tag("h3", area.name.replace("_", " ")), tag("ul", *tiles), class_="row"))
    legend = ", ".join(f"{sign} {outcome}" for outcome, sign in SIGNS.items())
    return tag("section", tag("h2", "All cases at a glance"), tag("p", legend, class_="note"), *rows, class_="matrix")


def _capabilities(document: ReportDocument) -> Markup:
    rows = [
        tag(
            "tr",
            tag("td", f"{'✓' if capability.is_there else '–'} {'there' if capability.is_there else 'not there'}"),
            tag("td", capability.title),
            tag("td", capability.reason),
            class_="there" if capability.is_there else "absent",
        )
        for capability in document.capabilities
    ]
    num_there = sum(capability.is_there for capability in document.capabilities)
    summary = tag("summary", f"What the server can do: {num_there} of {len(rows)} capabilities")
    return tag("details", summary, table((), rows), class_="plain")


def _filter(document: ReportDocument) -> Markup:
    outcomes = [_box("outcome", outcome, f"{SIGNS[outcome]} {outcome}") for outcome in SIGNS]
    severities = [_box("severity", severity, severity) for severity in (severity.value for severity in Severity)]
    areas = [tag("option", area.name.replace("_", " "), value=area.name) for area in document.areas]
    choice = tag("select", tag("option", "all areas", value=""), *areas, id="area")
    search = tag("input", type="search", id="text", placeholder="words of id, title, fault", autocomplete="off")
    return tag(
        "form",
        tag("fieldset", tag("legend", "Outcome"), *outcomes),
        tag("fieldset", tag("legend", "Severity"), *severities),
        tag("label", "Area ", choice),
        tag("label", "Text ", search),
        tag("span", tag("output", id="shown"), class_="shown"),
        tag("button", "Open all shown", type="button", id="open"),
        tag("button", "Close all", type="button", id="close"),
        id="filter",
        aria_label="Which cases are shown",
    )


def _box(name: str, value: str, label: str) -> Markup:
    return tag("label", tag("input", type="checkbox", name=name, value=value, checked=True), f" {label}", class_="box")


def _cases(document: ReportDocument) -> list[Part]:
    of_failures = measure_room(document)
    return [
        tag(
            "section",
            tag("h3", area.name.replace("_", " "), id=f"area-{area.name}"),
            *(
                render_case(case, of_failures if case.outcome == "fail" else UNTOLD)
                for case in document.cases
                if case.area == area.name
            ),
            class_="area",
            data_area=area.name,
        )
        for area in document.areas
    ]
