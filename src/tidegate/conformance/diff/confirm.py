"""Runs two subjects until what differs between them is sure: a regression counts when it comes again.

A subject is a server that can be asked, or a recording that cannot be asked again. Cases whose answers regressed are
asked again on both sides, for some rounds; what then was seen on both sides varies by itself and is no regression.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tidegate.conformance.case import Case, Profile, Turn
from tidegate.conformance.diff.comparison import DEFAULT_TOLERANCE, Comparison, compare_sides
from tidegate.conformance.diff.declared import Change
from tidegate.conformance.diff.difference import Meaning
from tidegate.conformance.diff.side import Side
from tidegate.conformance.run_report import RunReport


class Subject(Protocol):
    """One of two things that are compared."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def can_ask(self) -> bool:
        """Whether it answers anew each time."""
        ...

    async def has_contract(self) -> bool:
        """Whether it shows Tidegate's contract. Raises NoServerError."""
        ...

    async def ask(self, cases: Sequence[Case]) -> RunReport:
        """Returns what comes of the cases. Raises NoServerError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """`rounds`: how often what regressed is asked again. `tolerance`: of log-probabilities, in nats."""

    changes: Sequence[Change] = field(default_factory=list)
    tolerance: float = DEFAULT_TOLERANCE
    rounds: int = 2


Told = Callable[[str], None]


async def compare_subjects(old: Subject, new: Subject, cases: Sequence[Case], terms: Terms, tell: Told) -> Comparison:
    """Returns what differs, and still differs when it is asked again. Where neither side shows Tidegate's contract, its
    cases are left out. Raises NoServerError.
    """
    if not (await old.has_contract() or await new.has_contract()):
        cases = [case for case in cases if case.profile is Profile.OPENAI]
    reports: list[list[RunReport]] = [[], []]
    for subject, kept in zip((old, new), reports, strict=True):
        tell(f"asking {subject.name}" if subject.can_ask else f"reading {subject.name}")
        kept.append(await subject.ask(cases))

    def compare() -> Comparison:
        sides = [Side(subject.name, kept) for subject, kept in zip((old, new), reports, strict=True)]
        return compare_sides(sides[0], sides[1], terms.changes, tolerance=terms.tolerance)

    comparison = await asyncio.to_thread(compare)
    for _ in range(terms.rounds):
        doubtful = _doubtful(comparison, cases)
        if not doubtful:
            break
        for subject, kept in zip((old, new), reports, strict=True):
            if subject.can_ask:
                tell(f"asking {subject.name} again about {len(doubtful)} cases that differ")
                kept.append(await subject.ask(doubtful))
        comparison = await asyncio.to_thread(compare)
    return comparison


def _doubtful(comparison: Comparison, cases: Sequence[Case]) -> list[Case]:
    """Cases with a regression, but for those after which a server serves no more; all, where capabilities differ."""
    regressions = comparison.of(Meaning.REGRESSION)
    ids = {difference.case_id for difference in regressions}
    return [case for case in cases if case.turn is not Turn.LAST and (case.id in ids or "" in ids)]
