"""The end of a run as text for a terminal: failures worst first, counts by area, what told nothing, one closing line.

Nothing that a server sent reaches the terminal as a control character.
"""

from tidegate.conformance.reports.document import CaseDocument, ReportDocument
from tidegate.conformance.reports.words import (
    SIGNS,
    list_failures,
    outcomes_of,
    place_of,
    tell_confidence,
    tell_verdict,
)
from tidegate.reporting.terminal_text import fold
from tidegate.reporting.visible_text import one_line, visible

MAX_FAILURES = 25
"""Told one by one; more are counted."""
_MAX_FAULTS = 3
_MAX_CHARS = 300


def render_summary(document: ReportDocument, *, width: int | None = None) -> str:
    """Returns lines that end in a line feed. `width`: of the terminal; None where it is none. Commands are not folded,
    so that they can be copied.
    """
    lines: list[str] = []
    failures = list_failures(document)
    for case in failures[:MAX_FAILURES]:
        lines += ["", *fold(_failure(case), width), *_commands(case)]
    if len(failures) > MAX_FAILURES:
        lines += ["", f"and {len(failures) - MAX_FAILURES} more failures; a report (--report FILE.html) holds them all"]
    lines += ["", *_areas(document)]
    if unsure := [case for case in document.cases if case.outcome == "inconclusive"]:
        lines += ["", *fold(map(_unsure, unsure[:MAX_FAILURES]), width)]
        if len(unsure) > MAX_FAILURES:
            lines.append(f"and {len(unsure) - MAX_FAILURES} more inconclusive cases")
    counts = document.counts
    lines += [
        "",
        f"{tell_verdict(document)}; {counts.unsupported} unsupported, {counts.inconclusive} inconclusive; "
        f"{document.duration_s:.1f} s",
    ]
    return "\n".join(lines) + "\n"


def _areas(document: ReportDocument) -> list[str]:
    """A table: a column for each outcome that came about, numbers under one another."""
    rows = [(area.name, outcomes_of(area.counts)) for area in document.areas]
    shown = [outcome for outcome, number in outcomes_of(document.counts).items() if number]
    width = max((len(name) for name, _ in rows), default=0)
    digits = {outcome: max(len(str(numbers[outcome])) for _, numbers in rows) for outcome in shown}
    lines = []
    for name, numbers in rows:
        cells = [
            f"{SIGNS[outcome]} {numbers[outcome]:>{digits[outcome]}} {outcome}"
            if numbers[outcome]
            else " " * (3 + digits[outcome] + len(outcome))
            for outcome in shown
        ]
        lines.append(f"{name:<{width}}  {'  '.join(cells)}".rstrip())
    return lines


def _unsure(case: CaseDocument) -> str:
    sure = f" ({tell_confidence(case)})" if tell_confidence(case) else ""
    return f"{SIGNS['inconclusive']} {case.id}{sure}: {one_line(case.reason, _MAX_CHARS)}"


def _failure(case: CaseDocument) -> list[str]:
    lines = [f"{SIGNS['fail']} {case.id} ({case.severity}): {case.title}"]
    if sure := tell_confidence(case):
        lines.append(f"    {sure}")
    told = [f"{place_of(case, fault)}: {fault.says}" for fault in case.faults[:_MAX_FAULTS]]
    lines += [f"    {one_line(line, _MAX_CHARS)}" for line in told]
    if case.num_faults > _MAX_FAULTS:
        lines.append(f"    and {case.num_faults - _MAX_FAULTS} more")
    return lines + [f"    clause: {clause.text} ({clause.source})" for clause in case.clauses]


def _commands(case: CaseDocument) -> list[str]:
    return [f"    {line}" for line in visible("\n".join(case.by_hand[:1]), keeps="\n\t").splitlines()]
