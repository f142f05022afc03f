"""Two servers under test, compared as `tidegate diff` compares them."""

import asyncio
from collections.abc import Sequence
from fnmatch import fnmatchcase

from harness.judged_case import RightServer
from tidegate.conformance.catalog import CASES
from tidegate.conformance.diff.comparison import Comparison, compare_sides
from tidegate.conformance.diff.declared import Change
from tidegate.conformance.diff.side import Side
from tidegate.conformance.running.runner import Runner


def side_of(server: RightServer, patterns: Sequence[str], *, name: str = "", num_runs: int = 1) -> Side:
    """Returns a server as the cases that match see it."""
    cases = [case for case in CASES if any(fnmatchcase(case.id, pattern) for pattern in patterns)]
    assert cases, patterns
    reports = [asyncio.run(Runner(server.target).run(cases, server.probed)) for _ in range(num_runs)]
    return Side(name or server.target.base_url, reports)


def compared(old: RightServer, new: RightServer, patterns: Sequence[str], changes: Sequence[Change] = ()) -> Comparison:
    """Returns what differs in the cases that match."""
    return compare_sides(side_of(old, patterns), side_of(new, patterns), changes)
