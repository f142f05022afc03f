"""A comparison as one HTML file: differences by meaning, old and new side by side, light and dark. No script, nothing
from elsewhere; whatever a server sent is escaped by construction (`html_markup.py`).
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from importlib import resources

from tidegate.conformance.case import Case
from tidegate.conformance.diff.comparison import Comparison
from tidegate.conformance.diff.declared import show
from tidegate.conformance.diff.difference import Aspect, Difference, Meaning
from tidegate.conformance.diff.report_lines import ORDER, list_notes, place_of, sentence_of, tell_exit
from tidegate.conformance.diff.side import Side
from tidegate.conformance.reports.html_markup import Markup, Part, joined, prose, tag, text

MAX_VALUE = 4000
"""Characters of a value; a text longer than that is cut, and says so."""

_ASSETS = resources.files("tidegate.conformance.reports") / "assets"
_STYLE = _ASSETS.joinpath("report.css").read_text("utf-8") + _ASSETS.joinpath("diff.css").read_text("utf-8")

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
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{title} · tidegate diff"),
        Markup(f"<style>{_STYLE}</style>"),
    )
    sections = [_section(meaning, comparison) for meaning in ORDER]
    notes = [tag("p", note, class_="note") for note in list_notes(comparison)]
    body = tag(
        "body",
        _header(comparison, title),
        tag("main", _counts(comparison), _by_aspect(comparison), *sections, *notes),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _policy() -> str:
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _header(comparison: Comparison, title: str) -> Markup:
    return tag(
        "header",
        tag("p", "tidegate diff", class_="kicker"),
        tag("h1", title),
        tag("p", f"{sentence_of(comparison)}. {tell_exit(comparison)}."),
        tag("dl", _side("Old", comparison.old), _side("New", comparison.new), class_="facts sides"),
    )


def _side(name: str, side: Side) -> Markup:
    report = side.reports[0]
    num_runs = len(side.reports)
    facts = [report.probed.model, f"{num_runs} run{'s' * (num_runs != 1)}"]
    facts += [f"asked {report.started_at.replace('T', ' ').replace('Z', ' UTC')}"] if report.started_at else []
    facts += [f"ended early: {side.stopped}"] if side.stopped else []
    told = ", ".join(fact for fact in facts if fact)
    return tag("div", tag("dt", name), tag("dd", tag("code", side.name), tag("span", told, class_="note")))


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
    head = tag("thead", tag("tr", tag("th", "what differs", scope="col"), *heads))
    table = tag("table", head, tag("tbody", *rows), class_="areas")
    return tag("section", tag("h2", "By what differs"), tag("div", table, class_="scroll"))


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
    groups = [_group(cases.get(case_id), case_id, group) for case_id, group in by_case.items()]
    return tag(
        "details",
        tag("summary", tag("span", sign, " ", meaning.value, class_=f"badge {kind}"), f" {len(found)}"),
        *groups,
        class_=f"meaning {kind}",
        id=_anchor(meaning),
        open=meaning in (Meaning.REGRESSION, Meaning.INTENDED),
    )


def _group(case: Case | None, case_id: str, found: Sequence[Difference]) -> Markup:
    title: Part = prose(case.title) if case else "The server as a whole"
    about: list[Part] = [tag("p", prose(case.why), class_="note")] if case else []
    heading = tag("h3", title, " ", tag("code", case_id, class_="id") if case_id else None)
    return tag("article", heading, *about, *map(_difference, found))


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
