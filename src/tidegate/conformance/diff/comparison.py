"""Comparison: what came of comparing two servers, as reports show it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tidegate.conformance.diff.compare import compare
from tidegate.conformance.diff.declared import Change, ChangesError, apply_changes, read_version
from tidegate.conformance.diff.difference import Difference, Meaning
from tidegate.conformance.diff.side import Side

DEFAULT_TOLERANCE = 0.25
"""Of log-probabilities, in nats: other kernels and batches of one model were seen to move them by up to about this."""


@dataclass(frozen=True)
class Comparison:
    """`not_in_old`, `not_in_new`: cases that were chosen and that a side, a recording, does not hold; they are not
    compared. `unseen`: declared changes that did not come.
    """

    old: Side
    new: Side
    differences: Sequence[Difference]
    not_in_old: Sequence[str] = ()
    not_in_new: Sequence[str] = ()
    unseen: Sequence[Change] = field(default_factory=list)

    @cached_property
    def counts(self) -> Mapping[Meaning, int]:
        return Counter(difference.meaning for difference in self.differences)

    def of(self, meaning: Meaning) -> list[Difference]:
        """Returns the differences with one meaning."""
        return [difference for difference in self.differences if difference.meaning is meaning]

    @property
    def num_cases(self) -> int:
        """How many cases were compared."""
        return len(self.old.cases.keys() & self.new.cases.keys())

    @property
    def has_regressions(self) -> bool:
        return self.counts[Meaning.REGRESSION] > 0


def compare_sides(
    old: Side, new: Side, changes: Sequence[Change] = (), *, tolerance: float = DEFAULT_TOLERANCE
) -> Comparison:
    """Returns what differs, and what that means."""
    found = compare(old, new, tolerance=tolerance)
    declared = apply_changes(found, changes, (contract_version(old), contract_version(new)))
    return Comparison(
        old,
        new,
        declared.differences,
        sorted(new.cases.keys() - old.cases.keys()),
        sorted(old.cases.keys() - new.cases.keys()),
        declared.unseen,
    )


def contract_version(side: Side) -> tuple[int, int] | None:
    """Returns the version that the server's answers tell; None where they tell none."""
    for report in side.reports:
        for result in report.results:
            for evidence in result.runs:
                for exchanges in evidence.values():
                    for exchange in exchanges:
                        if text := exchange.headers.get("tidegate-contract"):
                            try:
                                return read_version(text, "tidegate-contract")
                            except ChangesError:
                                return None
    return None
