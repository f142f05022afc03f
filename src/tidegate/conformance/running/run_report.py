"""RunReport: everything that came of one run: who was asked, each case's verdict, and every byte exchanged.

What the reports (`report_*.py`) are made from. Does not know: how the run came about, how it is shown.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.conformance.case import Case
from tidegate.conformance.judge import CaseRun, Evidence, judge_run, unite
from tidegate.conformance.probing.probed import Probed
from tidegate.conformance.verdict import Outcome, Verdict
from tidegate.conformance.wire.target import Target


@dataclass(frozen=True, slots=True)
class Result:
    """A case, what came of it, and the exchanges of each run. `duration_s`: of all runs together. `stopped`: runs that
    ended before all was asked, by their index; their evidence is what was exchanged until then.
    """

    case: Case
    verdict: Verdict
    runs: tuple[Evidence, ...]
    duration_s: float
    stopped: Mapping[int, CaseRun] = field(default_factory=dict)

    def case_runs(self) -> Iterator[CaseRun]:
        """Yields the runs as the judge takes them."""
        for index, evidence in enumerate(self.runs):
            yield self.stopped.get(index) or CaseRun(evidence)


def result_of(case: Case, runs: Sequence[CaseRun], duration_s: float) -> Result:
    """Returns what came of a case that was run at least once."""
    return Result(
        case,
        unite([judge_run(case, run) for run in runs]),
        tuple(run.evidence for run in runs),
        duration_s,
        {index: run for index, run in enumerate(runs) if run.stopped},
    )


@dataclass(frozen=True, slots=True)
class RunReport:
    """Results in the order of the catalogue. `started_at`: UTC, as in `2026-01-31T12:00:00Z`; empty: not known.
    `stopped`: why the run ended before its end, in words; empty: it did not. `not_run`: cases that it left out.
    """

    target: Target
    probed: Probed
    results: tuple[Result, ...]
    duration_s: float
    started_at: str = ""
    stopped: str = ""
    not_run: tuple[str, ...] = ()

    def count(self) -> Mapping[Outcome, int]:
        """Returns how many cases came out which way; every outcome is there."""
        counted = Counter(result.verdict.outcome for result in self.results)
        return {outcome: counted[outcome] for outcome in Outcome}

    def by_area(self) -> Mapping[str, tuple[Result, ...]]:
        """Returns the results of each area; areas and results in the order of the catalogue."""
        areas: dict[str, list[Result]] = {}
        for result in self.results:
            areas.setdefault(result.case.area, []).append(result)
        return {area: tuple(results) for area, results in areas.items()}

    def failures(self) -> tuple[Result, ...]:
        """Returns the failed cases, worst severity first."""
        failed = [result for result in self.results if result.verdict.outcome is Outcome.FAIL]
        return tuple(sorted(failed, key=lambda result: result.case.severity.rank))
