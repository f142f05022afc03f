"""From the JUnit file that pytest and node's test runner write to one table for all clients.

A test that is listed as an exception must fail: one that passes is told, as its reason no longer holds.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from xml.etree import ElementTree

FIRST_WORDS = 300
"""Characters of a failure's message that are shown."""


@dataclass(frozen=True)
class CaseOutcome:
    """One test. `fault` is None when it passed; `is_skipped` when it was not run."""

    name: str
    fault: str | None
    is_skipped: bool = False


@dataclass(frozen=True)
class Verdict:
    """The tests of one client by what they mean. `excused`: failed as listed, each with its reason."""

    client: str
    version: str
    passed: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    excused: tuple[tuple[str, str], ...] = ()
    skipped: tuple[str, ...] = ()
    trouble: str | None = None
    """Why the tests could not run at all."""

    @property
    def is_good(self) -> bool:
        return self.trouble is None and not self.failed and bool(self.passed)


def read_outcomes(junit: str) -> list[CaseOutcome]:
    """Reads a JUnit file. Raises xml.etree.ElementTree.ParseError for one that is none."""
    return [_outcome(case) for case in ElementTree.fromstring(junit).iter("testcase")]


def _outcome(case: ElementTree.Element) -> CaseOutcome:
    name = case.get("name", "")
    for kind in ("failure", "error"):
        fault = case.find(kind)
        if fault is not None:
            text = fault.get("message") or fault.text or kind
            return CaseOutcome(name, re.sub(r"\s+", " ", text).strip()[:FIRST_WORDS])
    return CaseOutcome(name, None, is_skipped=case.find("skipped") is not None)


def judge(client: str, version: str, outcomes: Iterable[CaseOutcome], exceptions: Mapping[str, str]) -> Verdict:
    """Sorts outcomes. `exceptions`: from patterns of test names to the reason why such a test must fail."""
    passed, failed, excused, skipped = [], [], [], []
    for outcome in outcomes:
        reason = next((text for pattern, text in exceptions.items() if fnmatchcase(outcome.name, pattern)), None)
        if outcome.is_skipped:
            skipped.append(outcome.name)
        elif outcome.fault is None and reason is not None:
            failed.append((outcome.name, f"passes, though it is listed as an exception: {reason}"))
        elif outcome.fault is None:
            passed.append(outcome.name)
        elif reason is not None:
            excused.append((outcome.name, reason))
        else:
            failed.append((outcome.name, outcome.fault))
    return Verdict(client, version, tuple(passed), tuple(failed), tuple(excused), tuple(skipped))


def table(verdicts: Sequence[Verdict]) -> str:
    """Returns a Markdown table, and below it every failure and every exception with its reason."""
    rows = ["| client | version | passed | failed | expected exceptions | not run |", "|---|---|---|---|---|---|"]
    notes = []
    for verdict in verdicts:
        counts = [len(part) for part in (verdict.passed, verdict.failed, verdict.excused, verdict.skipped)]
        cells = map(str, counts) if verdict.trouble is None else ("-", "could not run", "-", "-")
        rows.append("| " + " | ".join((verdict.client, verdict.version, *cells)) + " |")
        if verdict.trouble is not None:
            notes.append(f"{verdict.client}: COULD NOT RUN: {verdict.trouble}")
        notes += [f"{verdict.client}: FAILED {name}: {fault}" for name, fault in verdict.failed]
        notes += [f"{verdict.client}: expected {name}: {reason}" for name, reason in verdict.excused]
        if verdict.trouble is None and not verdict.failed and not verdict.passed:
            notes.append(f"{verdict.client}: NOTHING RAN")
    return "\n".join([*rows, "", *notes] if notes else rows)
