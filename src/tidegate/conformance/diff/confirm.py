"""Runs two subjects until what differs between them is sure: a regression counts when it comes again.

A subject is a server that can be asked, or a recording that cannot be asked again. Cases whose answers regressed are
asked again on both sides, for some rounds; what then was seen on both sides varies by itself and is no regression.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from tidegate.conformance.case import Case, Profile, Turn
from tidegate.conformance.diff.comparison import DEFAULT_TOLERANCE, Comparison, compare_sides
from tidegate.conformance.diff.declared import Change
from tidegate.conformance.diff.difference import Meaning
from tidegate.conformance.diff.side import Side
from tidegate.conformance.running.run_report import RunReport


class NothingToCompareError(Exception):
    """The two sides have no case in common; the message says so."""


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

    @property
    def holds(self) -> frozenset[str] | None:
        """Ids of the cases that it can answer; None: any."""
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
    cases are left out; nobody is asked a case that a recording does not hold. Raises NoServerError and
    NothingToCompareError.
    """
    if not (await old.has_contract() or await new.has_contract()):
        cases = [case for case in cases if case.profile is Profile.OPENAI]
    missing = [_missing(subject, cases) for subject in (old, new)]
    for subject, ids in zip((old, new), missing, strict=True):
        if ids:
            tell(f"{subject.name} does not hold {len(ids)} of {len(cases)} cases: they are not asked")
    cases = _held(cases, missing)
    reports: list[list[RunReport]] = [[], []]
    for subject, kept in zip((old, new), reports, strict=True):
        tell(f"asking {subject.name}" if subject.can_ask else f"reading {subject.name}")
        kept.append(await subject.ask(cases))

    def compare() -> Comparison:
        sides = [Side(subject.name, kept) for subject, kept in zip((old, new), reports, strict=True)]
        found = compare_sides(sides[0], sides[1], terms.changes, tolerance=terms.tolerance)
        return replace(found, not_in_old=sorted(missing[0]), not_in_new=sorted(missing[1]))

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


def _missing(subject: Subject, cases: Sequence[Case]) -> frozenset[str]:
    """Ids of the cases that a subject does not hold."""
    return frozenset(case.id for case in cases if subject.holds is not None and case.id not in subject.holds)


def _held(cases: Sequence[Case], missing: Sequence[frozenset[str]]) -> list[Case]:
    held = [case for case in cases if not any(case.id in ids for ids in missing)]
    if not held:
        raise NothingToCompareError(f"none of the {len(cases)} chosen cases is held by both sides")
    return held


def _doubtful(comparison: Comparison, cases: Sequence[Case]) -> list[Case]:
    """Cases with a regression, but for those after which a server serves no more; all, where capabilities differ."""
    regressions = comparison.of(Meaning.REGRESSION)
    ids = {difference.case_id for difference in regressions}
    return [case for case in cases if case.turn is not Turn.LAST and (case.id in ids or "" in ids)]
