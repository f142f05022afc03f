"""A comparison as one HTML file: differences by meaning, old and new side by side.

Whatever a server sent is escaped by construction (`reporting/markup.py`).
"""

from collections import Counter
from collections.abc import Sequence
from importlib import resources

from tidegate.conformance.case import Case
from tidegate.conformance.diff.comparison import Comparison
from tidegate.conformance.diff.declared import show
from tidegate.conformance.diff.difference import Aspect, Difference, Meaning
from tidegate.conformance.diff.report_lines import ORDER, list_notes, place_of, sentence_of, tell_exit
from tidegate.conformance.diff.side import Side
from tidegate.conformance.reports.html import VERDICT_STYLE
from tidegate.reporting.markup import Markup, Part, joined, prose, tag, text
from tidegate.reporting.page import facts, header, render_page, table

MAX_OPEN = 60
"""Differences of one meaning that are open at once; of more only the cases are listed."""
MAX_VALUE = 4000
"""Characters of a value; a text longer than that is cut, and says so."""

_ASSETS = resources.files("tidegate.conformance.diff") / "assets"
_STYLE = VERDICT_STYLE + _ASSETS.joinpath("diff.css").read_text("utf-8")

_WORDS: dict[Meaning, tuple[str, str]] = {
    Meaning.REGRESSION: ("fail", "✕"),
    Meaning.INTENDED: ("intended", "="),
    Meaning.IMPROVEMENT: ("pass", "↑"),
    Meaning.ADDITION: ("pass", "+"),
    Meaning.VARIATION: ("unsupported", "~"),
}
"""Class and sign of each meaning."""


def render_html(comparison: Comparison) -> str:
    """Returns the document."""
    title = "Regressions found" if comparison.has_regressions else "No regressions"
    sections = [_section(meaning, comparison) for meaning in ORDER]
    notes = [tag("p", note, class_="note") for note in list_notes(comparison)]
    main = tag("main", _counts(comparison), _by_aspect(comparison), *sections, *notes)
    return render_page(f"{title} · tidegate diff", _header(comparison, title), main, style=_STYLE)


def _header(comparison: Comparison, title: str) -> Markup:
    says = tag("p", f"{sentence_of(comparison)}. {tell_exit(comparison)}.")
    sides = facts((("Old", _side(comparison.old)), ("New", _side(comparison.new))))
    return header("tidegate diff", title, says, tag("div", sides, class_="sides"))


def _side(side: Side) -> Markup:
    report = side.reports[0]
    num_runs = len(side.reports)
    told = [report.probed.model, f"{num_runs} run{'s' * (num_runs != 1)}"]
    told += [f"asked {report.started_at.replace('T', ' ').replace('Z', ' UTC')}"] if report.started_at else []
    told += [f"ended early: {side.stopped}"] if side.stopped else []
    return joined((tag("code", side.name), tag("span", ", ".join(filter(None, told)), class_="note")))


def _counts(comparison: Comparison) -> Markup:
    tiles = []
    for meaning in ORDER:
        kind, sign = _WORDS[meaning]
        number = comparison.counts[meaning]
        told = tag("a", meaning.value, href=f"#{_anchor(meaning)}") if number else tag("span", meaning.value)
        tiles.append(
            tag("li", tag("span", sign, class_="sign", aria_hidden="true"), tag("b", str(number)), told, class_=kind)
        )
    return tag("ul", *tiles, class_="counts of-diff")


def _anchor(meaning: Meaning) -> str:
    return meaning.value.replace(" ", "-")


def _by_aspect(comparison: Comparison) -> Markup | None:
    counts = Counter((difference.aspect, difference.meaning) for difference in comparison.differences)
    if not counts:
        return None
    shown = [meaning for meaning in ORDER if comparison.counts[meaning]]
    rows = []
    for aspect in Aspect:
        numbers = [counts[aspect, meaning] for meaning in shown]
        if any(numbers):
            cells = [
                tag("td", str(number) if number else "", class_=f"number {_WORDS[meaning][0] if number else ''}")
                for meaning, number in zip(shown, numbers, strict=True)
            ]
            rows.append(tag("tr", tag("th", aspect.value, scope="row"), *cells))
    heads = [tag("th", meaning.value, scope="col", class_="number") for meaning in shown]
    return tag("section", tag("h2", "By what differs"), table(("what differs", *heads), rows, class_="areas"))


def _section(meaning: Meaning, comparison: Comparison) -> Markup | None:
    """Differences of one case stand together under its title."""
    found = comparison.of(meaning)
    if not found:
        return None
    cases = {**comparison.new.cases, **comparison.old.cases}
    by_case: dict[str, list[Difference]] = {}
    for difference in found:
        by_case.setdefault(difference.case_id, []).append(difference)
    kind, sign = _WORDS[meaning]
    is_open = len(found) <= MAX_OPEN
    groups = [_group(cases.get(case_id), case_id, group, is_open=is_open) for case_id, group in by_case.items()]
    return tag(
        "details",
        tag("summary", tag("span", sign, " ", meaning.value, class_=f"badge {kind}"), f" {len(found)}"),
        *groups,
        class_=f"meaning {kind}",
        id=_anchor(meaning),
        open=meaning in (Meaning.REGRESSION, Meaning.INTENDED),
    )


def _group(case: Case | None, case_id: str, found: Sequence[Difference], *, is_open: bool) -> Markup:
    title: Part = prose(case.title) if case else "The server as a whole"
    about = tag("p", prose(case.why), class_="note") if case else None
    told = f"{len(found)} differences" if len(found) > 1 else None
    heading = tag("summary", tag("h3", title), tag("code", case_id, class_="id") if case_id else None, told)
    return tag("details", heading, about, *map(_difference, found), class_="group", open=is_open)


def _difference(difference: Difference) -> Markup:
    old, new = _pair(show(difference.old), show(difference.new))
    sides = [
        tag("div", tag("span", name, class_="side"), tag("pre", value, tabindex="0"), class_=name)
        for name, value in (("old", old), ("new", new))
    ]
    return tag(
        "section",
        tag("h4", place_of(difference, names_case=False), tag("span", f": {difference.because}", class_="note")),
        tag("div", *sides, class_="pair"),
    )


def _pair(old: str, new: str) -> tuple[Markup, Markup]:
    """Returns both values, and between what they begin and end with alike the part that differs marked."""
    length = min(len(old), len(new))
    start = next((index for index in range(length) if old[index] != new[index]), length)
    end = next((index for index in range(length - start) if old[-1 - index] != new[-1 - index]), length - start)
    return _marked(old, start, len(old) - end), _marked(new, start, len(new) - end)


def _marked(value: str, start: int, end: int) -> Markup:
    parts: list[Part] = []
    for at, until, is_other in ((0, start, False), (start, end, True), (end, len(value), False)):
        piece = value[at : min(until, MAX_VALUE)]
        if piece:
            parts.append(tag("mark", piece) if is_other and (start or end < len(value)) else text(piece))
    cut = len(value) - MAX_VALUE
    if cut > 0:
        parts.append(tag("span", f"\n… {cut} more characters", class_="cut"))
    return joined(parts) if value else tag("span", "(empty)", class_="note")
