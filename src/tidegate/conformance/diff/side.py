"""Side: everything known of one of two servers that are compared: reports of one run or several of the same cases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tidegate.conformance.capability import Capability
from tidegate.conformance.case import Case
from tidegate.conformance.diff.facts import Facts, read_facts
from tidegate.conformance.run_report import RunReport
from tidegate.conformance.verdict import Outcome


@dataclass(frozen=True)
class Side:
    """`name` is how people call it: its address, or the folder of its recording. `reports`: at least one; what differs
    between them varies by itself.
    """

    name: str
    reports: Sequence[RunReport]

    @cached_property
    def cases(self) -> Mapping[str, Case]:
        """By id, in the order of the catalogue."""
        return {result.case.id: result.case for report in self.reports for result in report.results}

    def outcomes(self, case_id: str) -> frozenset[Outcome]:
        return frozenset(
            result.verdict.outcome for report in self.reports for result in report.results if result.case.id == case_id
        )

    def first_words(self, case_id: str) -> str:
        """What the first run with something to say says of the case."""
        for report in self.reports:
            for result in report.results:
                if result.case.id == case_id and (result.verdict.faults or result.verdict.reason):
                    return result.verdict.faults[0].says if result.verdict.faults else result.verdict.reason
        return ""

    def facts(self, case_id: str, ask: str) -> Sequence[Facts]:
        """Facts of all copies and runs of an ask."""
        return [
            read_facts(exchange)
            for report in self.reports
            for result in report.results
            if result.case.id == case_id
            for evidence in result.runs
            for exchange in evidence.get(ask, ())
        ]

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What each run found."""
        return frozenset.intersection(*(report.probed.capabilities for report in self.reports))

    @property
    def stopped(self) -> str:
        """Why the first run ended before its end; "" where it did not."""
        return self.reports[0].stopped

    @property
    def absent(self) -> Mapping[Capability, str]:
        return self.reports[-1].probed.absent
