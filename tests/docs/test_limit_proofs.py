"""Every bound of docs/limits.md is pushed past its maximum by a test, or says why not."""

import re
from pathlib import Path

import pytest

from harness.limit_proofs import PROOFS, REASONS

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"\| `([\w/]+\.py)` `([\w.]+)` \|$")
BOUNDS = [
    f"{match[1]} {match[2]}"
    for line in (ROOT / "docs" / "limits.md").read_text("utf-8").splitlines()
    if (match := ROW.search(line))
]


PROVEN = [bound for tests in PROOFS.values() for bounds in tests.values() for bound in bounds]
TESTS = [(file, name) for file, tests in PROOFS.items() for name in tests]


def test_every_bound_of_the_page_has_a_proof_or_a_reason_and_no_other_has() -> None:  # OVL-8
    assert sorted(BOUNDS) == sorted([*PROVEN, *REASONS])


@pytest.mark.parametrize(("file", "name"), TESTS)
def test_the_test_that_pushes_a_bound_exists(file: str, name: str) -> None:
    assert f"def test_{name}(" in (ROOT / "tests" / file).read_text("utf-8")
