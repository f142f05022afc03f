"""docs/settings.md says what the code says."""

from pathlib import Path

from tidegate.cli.settings import SECTIONS, describe
from tidegate.cli.settings_tables import render_tables

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_holds_the_tables_of_the_code() -> None:
    page = PAGE.read_text("utf-8")
    assert page.endswith(render_tables()), "run: python -m tidegate.cli.settings_tables docs/settings.md"


def test_every_setting_has_a_meaning_of_its_own() -> None:
    meanings = [describe(section, key) for section, kind in SECTIONS.items() for key in kind.__struct_fields__]
    assert all(meanings)
    assert len(set(meanings)) == len(meanings)
