"""docs/limits.md names the values that the code has."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
TEXT = PAGE.read_text("utf-8").partition("## Published names")[0]
"""The table of published names has a test of its own, test_published_limits.py."""
UNITS = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
ROW = re.compile(r"\| (?P<bound>[^|]+) \| (?P<value>[^|]+) \|[^|]*\| `(?P<file>[\w/]+\.py)` `(?P<name>[\w.]+)` \|")
ROWS = [match for line in TEXT.splitlines() if (match := ROW.fullmatch(line))]


def value_in_code(file: str, name: str) -> object:
    """Returns a module's constant, or a dataclass' or struct's default as `Class.field`."""
    module = importlib.import_module("tidegate." + file.removesuffix(".py").replace("/", "."))
    first, _, field = name.partition(".")
    found = getattr(module, first)
    return getattr(found(), field) if field else found


def value_on_page(text: str) -> float | None:
    if text == "none":
        return None
    number, _, unit = text.partition(" ")
    return float(number) * UNITS.get(unit, 1)


def test_every_row_of_a_table_is_understood() -> None:
    lines = [line for line in TEXT.splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(lines) - sum("| bound |" in line for line in lines)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["bound"])
def test_the_value_is_the_codes(row: re.Match[str]) -> None:
    assert value_in_code(row["file"], row["name"]) == value_on_page(row["value"])
