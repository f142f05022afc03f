"""docs/conformance/ is what the catalogue says."""

import re
from pathlib import Path

from tidegate.conformance.catalog import CASES
from tidegate.conformance.reports.catalog_pages import INDEX, render_pages

FOLDER = Path(__file__).parents[2] / "docs" / "conformance"
REMEDY = "run: python -m tidegate.conformance.reports.catalog_pages docs/conformance"


def test_the_pages_are_up_to_date() -> None:
    pages = render_pages()
    assert {path.name for path in FOLDER.glob("*.md")} == set(pages), REMEDY
    stale = [name for name, text in pages.items() if (FOLDER / name).read_text("utf-8") != text]
    assert stale == [], REMEDY


def test_every_case_has_its_section_and_every_area_its_row() -> None:
    pages = render_pages()
    for case in CASES:
        page = pages[f"{case.area}.md"]
        assert f"\n## `{case.id}`\n" in page
        assert f"(#{case.id.replace('.', '')})" in page
        assert case.why in page
        assert f"]({case.area}.md) |" in pages[INDEX]
    assert sum(len(re.findall("^## `", page, re.MULTILINE)) for page in pages.values()) == len(CASES)


def test_pages_name_functions_and_no_addresses_in_memory() -> None:
    for page in render_pages().values():
        assert not re.search(r" at 0x[0-9a-f]+|<function|<bound method", page)
        assert page.count("```") % 2 == 0
