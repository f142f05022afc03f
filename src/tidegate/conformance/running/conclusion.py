"""Conclusion: what a run comes to for whoever asked for it: an exit status, and why. Pure."""

from dataclasses import dataclass
from enum import IntEnum

from tidegate.conformance.running.run_report import RunReport
from tidegate.conformance.verdict import Outcome


class ExitStatus(IntEnum):
    """Cases that are unsupported or inconclusive do not fail a run. A run in which no case told anything is none."""

    ALL_PASSED = 0
    FAILURES = 1
    COULD_NOT_RUN = 2


@dataclass(frozen=True, slots=True)
class Conclusion:
    """`says`: what a summary does not tell, line by line."""

    status: ExitStatus
    says: tuple[str, ...] = ()


def conclude(report: RunReport) -> Conclusion:
    """Returns what the run comes to. A failure weighs most: it stands whatever else went wrong."""
    counts = report.count()
    broken = [result.case.id for result in report.results if result.verdict.is_suite_fault]
    says: list[str] = []
    if report.stopped:
        left = f"; {len(report.not_run)} cases were not run" if report.not_run else ""
        says.append(f"The run ended early: {report.stopped}{left}.")
    elif report.not_run:
        says.append(f"{len(report.not_run)} cases are not in the recording.")
    if broken:
        says.append(f"The suite itself failed in {', '.join(broken)}: a defect of the suite, not of the server.")
    num_told = counts[Outcome.PASS] + counts[Outcome.FAIL]
    if not num_told:
        says.append("No case told anything about the server.")
    if counts[Outcome.FAIL]:
        return Conclusion(ExitStatus.FAILURES, tuple(says))
    if report.stopped or broken or not num_told:
        return Conclusion(ExitStatus.COULD_NOT_RUN, tuple(says))
    return Conclusion(ExitStatus.ALL_PASSED, tuple(says))
