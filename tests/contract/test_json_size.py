"""How much a JSON text holds, counted before it is parsed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.contract import json_depth
from tidegate.contract.json_depth import unescaped_blocks
from tidegate.contract.json_size import MAX_ELEMENTS, MAX_MEMBERS, check_json_size, json_size
from tidegate.errors import InvalidValue

texts = st.text(st.sampled_from('a":,\\[]{}é\n'), max_size=12)
values = st.recursive(
    texts | st.integers(0, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=30,
)


def count(value: Any) -> tuple[int, int]:
    """Members and separators, by walking the value."""
    if not isinstance(value, list | dict):
        return 0, 0
    parts = [count(part) for part in (value.values() if isinstance(value, dict) else value)]
    num_own = len(value) if isinstance(value, dict) else 0
    return num_own + sum(p[0] for p in parts), max(len(value) - 1, 0) + sum(p[1] for p in parts)


@given(values, st.booleans(), st.integers(1, 9))
def test_members_and_separators_outside_strings_are_counted(value: Any, is_ascii: bool, block_bytes: int) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_depth, "BLOCK_BYTES", block_bytes)
        assert json_size(text) == count(value)


@given(st.binary(max_size=60).map(lambda raw: raw.replace(b"x", b"\\")), st.integers(1, 9))
def test_blocks_are_the_text_without_its_escapes_wherever_they_are_cut(text: bytes, block_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_depth, "BLOCK_BYTES", block_bytes)
        cut = b"".join(unescaped_blocks(text))
    assert cut == b"".join(unescaped_blocks(text))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b'{"a":[' + b"0," * MAX_ELEMENTS + b"0,0]}", "json_elements"),
        (b"{" + b",".join(b'"%d":0' % number for number in range(MAX_MEMBERS + 1)) + b"}", "json_members"),
    ],
    ids=["elements", "members"],
)
def test_too_much_is_refused_by_name(text: bytes, name: str) -> None:  # SLOW-4
    with pytest.raises(InvalidValue) as raised:
        check_json_size(text)
    assert raised.value.limit is not None
    assert (raised.value.limit.name, raised.value.limit.actual) == (name, raised.value.limit.value + 1)


def test_what_stands_in_strings_does_not_count() -> None:  # SLOW-4
    check_json_size(b'{"a":"' + b':,\\":' * MAX_ELEMENTS + b'"}')
