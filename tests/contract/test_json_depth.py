"""Depth is found without parsing, and strings are seen as strings."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.contract.json_depth import check_json_depth, json_depth
from tidegate.errors import InvalidValue


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max((depth_of(member) for member in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((depth_of(member) for member in value), default=0)
    return 0


TEXTS = st.text(alphabet='[]{}"\\ax,:', max_size=8)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=20,
)


@given(VALUES)
def test_the_depth_of_a_json_text_is_the_depth_of_its_value(value: Any) -> None:
    assert json_depth(json.dumps(value).encode()) == depth_of(value)


CASES = [
    (b"", 0),
    (b"1", 0),
    (b'"[[["', 0),
    (b'"\\"[[["', 0),
    (b'"\\\\"', 0),
    (b'["\\\\",[1]]', 2),
    (b'["\\\\\\"[[[[",[1]]', 2),
    (b'["\\u005b[",{"a":[]}]', 3),
    (b"[[[", 3),
    (b"]]][", 0),
]


@pytest.mark.parametrize(("text", "depth"), CASES)
def test_depth_of_examples(text: bytes, depth: int) -> None:
    assert max(json_depth(text), 0) == depth


@pytest.mark.parametrize("pair", [(b"[", b"]"), (b'{"a":', b"}")])
def test_the_limit_itself_is_allowed_and_one_more_is_not(pair: tuple[bytes, bytes]) -> None:
    opening, closing = pair
    check_json_depth(opening * 128 + b"1" + closing * 128, 128)
    with pytest.raises(InvalidValue) as raised:
        check_json_depth(opening * 129 + b"1" + closing * 129, 128)
    limit = raised.value.limit
    assert limit is not None
    assert (limit.name, limit.value, limit.actual) == ("json_depth", 128, 129)


def test_many_shallow_brackets_are_not_deep() -> None:
    check_json_depth(b"[" + b"[],{}," * 200_000 + b"1]", 128)


def test_depth_is_carried_over_from_block_to_block() -> None:
    filler = b"[]," * 100_000
    assert json_depth(b"[" * 5 + filler + b"[[" + filler + b'"[' + filler + b'"]]' + b"]" * 5) == 8
