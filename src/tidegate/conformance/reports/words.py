"""What several reports say in the same plain words: a failure, line by line, and the order of failures."""

from collections.abc import Sequence

from tidegate.conformance.case import Severity
from tidegate.conformance.reports.document import CaseDocument, Counts, FaultDocument, ReportDocument

SIGNS = {"pass": "✓", "fail": "✕", "unsupported": "–", "inconclusive": "?"}
"""So that no report tells by colour alone."""
_RANKS = {severity.value: severity.rank for severity in Severity}


def list_failures(document: ReportDocument) -> Sequence[CaseDocument]:
    """Returns the failed cases, worst severity first, else in the order of the catalogue."""
    failed = [case for case in document.cases if case.outcome == "fail"]
    return sorted(failed, key=lambda case: _RANKS[case.severity])


def tell_verdict(document: ReportDocument) -> str:
    """Returns one sentence. Cases that told nothing count neither way."""
    counts = document.counts
    num_told = counts.passed + counts.failed
    if not counts.total:
        return "No case was run"
    if not num_told:
        return "No case could be judged"
    noun = "case" if num_told == 1 else "cases"
    if counts.failed:
        return f"{counts.failed} of {num_told} {noun} {'fails' if counts.failed == 1 else 'fail'}"
    return f"All {num_told} cases pass" if num_told > 1 else "The only case passes"


def tell_end(document: ReportDocument) -> str:
    """Returns why a run ended early, and what it left out, in a sentence; empty where it did not."""
    if not document.stopped:
        return ""
    return f"The run ended early: {document.stopped}; {len(document.not_run)} cases were not run."


def place_of(case: CaseDocument, fault: FaultDocument) -> str:
    """Returns where a fault is seen: `it`, `second, copy 3, event 5`."""
    where = fault.ask or "it"
    if any(ask.copies > 1 for ask in case.asks if ask.name == fault.ask):
        where += f", copy {fault.copy}"
    return where if fault.event is None else f"{where}, event {fault.event}"


def outcomes_of(counts: Counts) -> dict[str, int]:
    """Returns how many cases came out which way, in the order of reports."""
    return {
        "pass": counts.passed,
        "fail": counts.failed,
        "unsupported": counts.unsupported,
        "inconclusive": counts.inconclusive,
    }


def tell_confidence(case: CaseDocument) -> str:
    """Returns how many runs told something, in words; empty where one run told all, or none was needed."""
    if case.num_runs < 2:
        return ""
    return f"{case.num_conclusive} of {case.num_runs} runs told something"


def first_fault(case: CaseDocument) -> str:
    """Returns what the first fault says; empty where there is none."""
    return case.faults[0].says if case.faults else ""


def describe_failure(case: CaseDocument) -> list[str]:
    """Returns lines: what must be so, why, the clauses, the faults, how to see it by hand."""
    lines = [case.title, f"Severity: {case.severity}", f"Why: {case.why}"]
    lines += [f"Clause: {clause.text} ({clause.source}; {clause.id})" for clause in case.clauses]
    lines += [f"{place_of(case, fault)}: {fault.says}" for fault in case.faults]
    if case.num_faults > len(case.faults):
        lines.append(f"and {case.num_faults - len(case.faults)} more faults")
    return [*lines, *case.by_hand]
