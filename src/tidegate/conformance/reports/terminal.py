"""The end of a run as text for a terminal: counts by area, failures worst first, one closing line.

Nothing that a server sent reaches the terminal as a control character.
"""

from tidegate.conformance.reports.document import CaseDocument, ReportDocument
from tidegate.conformance.reports.visible_text import one_line, visible
from tidegate.conformance.reports.words import SIGNS, list_failures, place_of, tell_verdict

MAX_FAILURES = 25
"""Told one by one; more are counted."""
_MAX_FAULTS = 3
_MAX_CHARS = 300


def render_summary(document: ReportDocument, *, max_failures: int = MAX_FAILURES) -> str:
    """Returns lines that end in a line feed."""
    lines = ["", *_areas(document)]
    failures = list_failures(document)
    for case in failures[:max_failures]:
        lines += ["", *_failure(case)]
    if len(failures) > max_failures:
        lines += ["", f"and {len(failures) - max_failures} more failures; a report (--report FILE.html) holds them all"]
    counts = document.counts
    lines += [
        "",
        f"{tell_verdict(document)}; {counts.unsupported} unsupported, {counts.inconclusive} inconclusive; "
        f"{document.duration_s:.1f} s",
    ]
    return "\n".join(lines) + "\n"


def _areas(document: ReportDocument) -> list[str]:
    width = max((len(area.name) for area in document.areas), default=0)
    lines = []
    for area in document.areas:
        numbers = {
            "pass": area.counts.passed,
            "fail": area.counts.failed,
            "unsupported": area.counts.unsupported,
            "inconclusive": area.counts.inconclusive,
        }
        told = "  ".join(f"{SIGNS[name]} {number} {name}" for name, number in numbers.items() if number)
        lines.append(f"{area.name:<{width}}  {told}")
    return lines


def _failure(case: CaseDocument) -> list[str]:
    lines = [f"{SIGNS['fail']} {case.id} ({case.severity}): {case.title}"]
    told = [f"{place_of(case, fault)}: {fault.says}" for fault in case.faults[:_MAX_FAULTS]]
    lines += [f"    {one_line(line, _MAX_CHARS)}" for line in told]
    if case.num_faults > _MAX_FAULTS:
        lines.append(f"    and {case.num_faults - _MAX_FAULTS} more")
    lines += [f"    clause: {clause.text} ({clause.source})" for clause in case.clauses]
    lines += [f"    {line}" for line in visible("\n".join(case.by_hand[:1]), keeps="\n\t").splitlines()]
    return lines
