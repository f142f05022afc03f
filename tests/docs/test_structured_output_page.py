"""docs/structured_output.md lists the keywords and formats that the code has."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tidegate.grammar.schema.formats import ENFORCED_FORMATS, REFUSED_FORMATS
from tidegate.grammar.schema.schema_support import ENFORCED, REFUSED, REMARKS

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "structured_output.md").read_text("utf-8").split())

LISTS: dict[str, tuple[str, Iterable[str]]] = {
    "enforced": (r"that is not possible: (.*?)\.", ENFORCED),
    "remarks": (r"as the standard has it: (.*?), and keywords", REMARKS),
    "refused": (r"Always refused: (.*?), references", REFUSED),
    "formats": (r"Formats enforced: (.*?)\. Refused", ENFORCED_FORMATS),
    "refused formats": (r"Formats enforced: .*? Refused: (.*?)\. Others", REFUSED_FORMATS),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_on_the_page_is_the_codes(name: str) -> None:
    pattern, names = LISTS[name]
    found = re.search(pattern, PAGE)
    assert found is not None
    assert re.findall(r"`([^`]+)`", found[1]) == sorted(names)
