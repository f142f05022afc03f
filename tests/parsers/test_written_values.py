"""What JSON a value becomes that a model wrote as plain text: the narrower type first, a string where nothing fits."""

import pytest

from tidegate.parsers.offered_tools import to_json

VALUES = [
    ("null,string", "null", "null"),
    ("null,string", " None\n", "null"),
    ("string", "None", '"None"'),
    ("boolean,string", "True", "true"),
    ("boolean", "false", "false"),
    ("string", "true", '"true"'),
    ("integer", " 12 ", "12"),
    ("number,string", "1.5e3", "1.5e3"),
    ("string", "12", '"12"'),
    ("integer", "twelve", '"twelve"'),
    ("object", ' {"a": [1]} ', '{"a": [1]}'),
    ("array,string", "[1, 2", '"[1, 2"'),
    ("string", "[1]", '"[1]"'),
    ("string", ' a "b"\n', '" a \\"b\\"\\n"'),
]


@pytest.mark.parametrize(("types", "text", "written"), VALUES)
def test_a_value_becomes_the_narrowest_type_that_its_schema_allows(types: str, text: str, written: str) -> None:
    assert to_json(frozenset(types.split(",")), text) == written
