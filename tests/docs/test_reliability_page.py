"""docs/reliability.md: every requirement is there, with the tests that carry its id, or with the reason why not."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
COUNTS = {"IDEM": 10, "OVL": 9, "DL": 5, "SSE": 9, "SLOW": 6, "ERR": 4, "RL": 1, "LIFE": 4, "ISO": 1, "SEC": 30}
"""How many requirements each group has."""
REMEDY = "run: python scripts/reliability_page.py"


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "scripts"))
    yield importlib.import_module("reliability_page")
    sys.path.remove(str(ROOT / "scripts"))


def test_every_requirement_is_on_the_page(script: ModuleType) -> None:
    expected = [f"{group}-{number + 1}" for group, count in COUNTS.items() for number in range(count)]
    assert list(script.PROMISES) == expected
    rows = [line.split(" | ")[0] for line in script.PAGE.read_text("utf-8").splitlines() if script.ID.search(line[:12])]
    assert rows == [f"| {requirement}" for requirement in expected]


def test_the_page_is_what_the_tests_say(script: ModuleType) -> None:
    assert script.PAGE.read_text("utf-8") == script.render(script.collect(ROOT / "tests")), REMEDY


def test_every_requirement_has_a_test_or_a_reason_and_tests_name_no_others(script: ModuleType) -> None:
    proofs = script.collect(ROOT / "tests")
    assert script.unknown(proofs) == []
    assert script.missing(proofs) == []


def test_ids_are_read_off_def_lines_and_parameters_and_nowhere_else(script: ModuleType, tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_it.py").write_text(
        '"""About DL-1."""\n'
        "CASES = {'DL-2 a case': 1, 'not DL-9': 2}\n"
        "def test_one() -> None:  # DL-3 SSE-4\n"
        "    pass  # DL-8\n"
        "def test_two(  # SEC-9\n"
        "    a: int,\n"
        ") -> None:\n"
        "    '''About DL-7.'''\n",
        "utf-8",
    )
    found = {(name, str(proof)) for name, proofs in script.collect(tests).items() for proof in proofs}
    assert found == {
        ("DL-2", "`test_it.py`"),
        ("DL-3", "`test_it.py` one"),
        ("SSE-4", "`test_it.py` one"),
        ("SEC-9", "`test_it.py` two"),
    }
