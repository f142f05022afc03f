"""Beginnings of JSON texts, at every split."""

import json

import pytest

from tidegate.conformance.json_beginning import is_json_beginning
from tidegate.conformance.wire.json_text import NOT_JSON, read_json, read_written_json

WHOLE = (
    '{"a": [1, -2.5e+3, true, false, null, "x\\n\\u00e9\\\\\\"", {}], "b": {"c": []}}',
    '[\n  {"name": "Zürich 東京 \U0001f30a", "n": 0.5}, [[]]\n]',
    '"a text"',
    "-12.75E-2",
    "true",
)
NOT_ONE = (
    "Cats have four legs",
    '{"a": 1} and',
    "{'a': 1}",
    '{"a" 1',
    "[1, 2}",
    "[01",
    '{"a": tru3',
    '{"a": NaN',
    '{"a": 1,, "b"',
    '["a\\x',
    "]",
    "```json",
)


@pytest.mark.parametrize("text", WHOLE)
def test_every_beginning_of_a_text_is_one(text: str) -> None:
    assert json.loads(text) is not None
    assert [text[:end] for end in range(len(text) + 1) if not is_json_beginning(text[:end])] == []


@pytest.mark.parametrize("text", NOT_ONE)
def test_what_nothing_can_complete_is_none(text: str) -> None:
    assert not is_json_beginning(text)


def test_a_name_that_stands_twice_is_json_where_a_model_writes_it() -> None:
    assert read_written_json('{"a": 1, "a": 2}') == {"a": 2}
    assert read_json(b'{"a": 1, "a": 2}') is NOT_JSON
    assert is_json_beginning('{"a": 1, "a": 2, "b')
