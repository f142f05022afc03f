"""The report as Markdown, for the summary of a pull request: a table by area, then failures, worst first.

Bounded, since forges refuse comments that are longer; what does not fit is counted. What a server sent stands in code,
where it can neither format nor mention anybody.
"""

from collections.abc import Iterable

from tidegate.conformance.reports.document import CaseDocument, Counts, ReportDocument
from tidegate.conformance.reports.words import SIGNS, list_failures, place_of, tell_end, tell_verdict
from tidegate.reporting.markdown_text import code, fence

MAX_MARKDOWN_BYTES = 60 * 1024
_MAX_FAULTS = 3
_RESERVED_BYTES = 8 * 1024
"""For the lists of cases that told nothing, after the failures."""


def render_markdown(document: ReportDocument) -> str:
    """Returns at most MAX_MARKDOWN_BYTES of UTF-8."""
    head = _head(document)
    text, num_left = _fill(head, map(_failure, list_failures(document)), MAX_MARKDOWN_BYTES - _RESERVED_BYTES)
    if num_left:
        text += f"\n{num_left} more failures stand in the whole report.\n"
    for outcome in ("inconclusive", "unsupported"):
        cases = [case for case in document.cases if case.outcome == outcome]
        if cases:
            end = "\n</details>\n"
            opening = f"\n<details><summary>{len(cases)} {outcome}</summary>\n\n"
            room = MAX_MARKDOWN_BYTES - 200 - (0 if outcome == "unsupported" else _RESERVED_BYTES // 2)
            text, num_left = _fill(text + opening, map(_reason, cases), room)
            text += (f"- and {num_left} more\n" if num_left else "") + end
    return text


def _fill(text: str, parts: Iterable[str], max_bytes: int) -> tuple[str, int]:
    """Returns the text with as many of the parts as there is room for, and how many are left."""
    size = len(text.encode())
    taken = [text]
    waiting = list(parts)
    for position, part in enumerate(waiting):
        size += len(part.encode())
        if size > max_bytes:
            return "".join(taken), len(waiting) - position
        taken.append(part)
    return "".join(taken), 0


def _head(document: ReportDocument) -> str:
    server = document.server
    sign = SIGNS["fail"] if document.counts.failed else SIGNS["pass"] if document.counts.passed else "?"
    facts = [f"{code(server.model)} at {code(server.base_url)}", f"{document.counts.total} cases"]
    facts += [f"{document.duration_s:.0f} s", f"seed {document.seed}"]
    facts += [f"tidegate conform {document.suite_version}", document.started_at]
    lines = [f"## {sign} {tell_verdict(document)}", "", ", ".join(filter(None, facts)), ""]
    if document.stopped:
        lines += [f"**{tell_end(document)}**", ""]
    lines += ["| area | ✓ pass | ✕ fail | – unsupported | ? inconclusive |", "|---|--:|--:|--:|--:|"]
    lines += [_row(area.name.replace("_", " "), area.counts) for area in document.areas]
    lines.append(_row("**all**", document.counts))
    if document.counts.failed:
        lines += ["", "### What fails, worst first"]
    return "\n".join(lines) + "\n"


def _row(name: str, counts: Counts) -> str:
    numbers = (counts.passed, counts.failed, counts.unsupported, counts.inconclusive)
    return f"| {name} | {' | '.join(str(number) if number else '' for number in numbers)} |"


def _failure(case: CaseDocument) -> str:
    lines = ["", f"#### {SIGNS['fail']} {case.severity}: {case.title}", "", f"`{case.id}`. {case.why}", ""]
    lines += [f"- Clause: {clause.text} ({clause.source}; `{clause.id}`)" for clause in case.clauses]
    shown = case.faults[:_MAX_FAULTS]
    lines += [f"- {place_of(case, fault)}: {code(fault.says)}" for fault in shown]
    if case.num_faults > len(shown):
        lines.append(f"- and {case.num_faults - len(shown)} more")
    if case.by_hand:
        lines += ["", *fence(case.by_hand[:1])]
    return "\n".join(lines) + "\n"


def _reason(case: CaseDocument) -> str:
    return f"- `{case.id}`: {code(case.reason)}\n"
