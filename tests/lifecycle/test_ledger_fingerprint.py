"""Keys and fingerprints: what is one operation, and what is not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.lifecycle.fingerprint import fingerprint, operation_id, read_key

ROUTE = "/v1/completions"
KEYS = [
    ("abc", "abc"),
    ('"abc"', "abc"),
    ("8e03978e-40d5-43e8-bc93-6894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f9324"),
    ("a,b", "a,b"),
    ('a"b', 'a"b'),
    (r'"a\"b\\c"', r'a"b\c'),
    ("!~", "!~"),
    ("k" * 255, "k" * 255),
    ('"' + "k" * 255 + '"', "k" * 255),
    ("k" * 256, None),
    ('"' + "k" * 256 + '"', None),
    ("", None),
    ('""', None),
    ('"', None),
    ('"abc', None),
    ('"abc"d', None),
    (r'"a\b"', None),
    ("a b", None),
    ('"a b"', None),
    ("a\tb", None),
    ("a\x7f", None),
    ("schl\xfcssel", None),
    ("a, b", None),
    ('"a", "b"', None),
    ("a, ", None),
    (", a", None),
    (", ", None),
]


@pytest.mark.parametrize(("value", "key"), KEYS)
def test_a_key_is_visible_ascii_quoted_or_not(value: str, key: str | None) -> None:  # IDEM-8
    assert read_key(value) == key


@given(st.lists(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E)), min_size=2, max_size=4))
def test_repeated_headers_are_never_one_key(values: list[str]) -> None:  # IDEM-8
    assert read_key(", ".join(values)) is None


def test_operations_are_named_by_caller_and_key_together() -> None:  # IDEM-7
    pairs = [("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", ""), ("a", "b"), ("b", "a")]
    assert len({operation_id(*pair) for pair in pairs}) == len(pairs)
    assert operation_id("a", "b") == operation_id("a", "b")
    assert b"secret" not in operation_id("caller", "secret")


SAME = [
    (b'{"a":1,"b":[2,3]}', b' { "b" : [2 , 3],\n"a": 1 }'),
    (b'{"a":1,"a":2}', b'{"a":2}'),
    ('{"a":"é"}'.encode(), rb'{"a":"\u00e9"}'),
    (b'{"a":"/"}', rb'{"a":"\/"}'),
    (b'{"a":1}', b'{"a":1.0}'),
    (b'{"a":1}', b'{"a":1e0}'),
    (b'{"a":100}', b'{"a":1E2}'),
    (b'{"a":0.5}', b'{"a":5e-1}'),
    (b'{"a":0.50}', b'{"a":0.5}'),
    (b'{"a":-0.0}', b'{"a":0}'),
    (b'{"a":-2.5e3}', b'{"a":-2500}'),
    (b'{"a":1' + b"0" * 30 + b"}", b'{"a":1e30}'),
    (b'{"a":{"c":1,"b":{"e":1,"d":2}}}', b'{"a":{"b":{"d":2,"e":1},"c":1}}'),
]
DIFFERENT = [
    (b'{"a":1}', b'{"a":2}'),
    (b'{"a":1}', b'{"a":"1"}'),
    (b'{"a":1}', b'{"a":true}'),
    (b'{"a":1}', b'{"a":-1}'),
    (b'{"a":null}', b"{}"),
    (b'{"a":[1,2]}', b'{"a":[2,1]}'),
    (b'{"a":0.1}', b'{"a":0.10000000000000001}'),
    (b'{"a":9007199254740993}', b'{"a":9007199254740992}'),
    (b'{"a":1e400}', b'{"a":1e401}'),
    (b'{"a":1.5}', b'{"a":"1.5"}'),
    (b'{"a":"x"}', b'{"b":"x"}'),
    (b'{"a":{"b":1}}', b'{"a":[{"b":1}]}'),
    (b'{"a":1' + b"0" * 5000 + b"}", b'{"a":1' + b"0" * 5001 + b"}"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_json_is_one_request(one: bytes, other: bytes) -> None:  # IDEM-2
    assert fingerprint("POST", ROUTE, one) == fingerprint("POST", ROUTE, other) is not None


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_other_json_is_another_request(one: bytes, other: bytes) -> None:  # IDEM-3
    prints = fingerprint("POST", ROUTE, one), fingerprint("POST", ROUTE, other)
    assert None not in prints
    assert prints[0] != prints[1]


def test_method_and_route_belong_to_the_request() -> None:  # IDEM-3
    asked = [("POST", ROUTE), ("PUT", ROUTE), ("POST", "/v1/chat/completions")]
    assert len({fingerprint(method, route, b"{}") for method, route in asked}) == 3


NOT_JSON = [b"", b"{", b"nothing", b'{"a":1,}', b'{"a":NaN}', b'"\xff"', b"[" * 100_000, b"\xef\xbb\xbf{}", b'{"a":01}']


@pytest.mark.parametrize("body", NOT_JSON, ids=lambda body: repr(body[:12]))
def test_what_is_not_json_has_no_fingerprint(body: bytes) -> None:
    assert fingerprint("POST", ROUTE, body) is None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
).filter(lambda value: "\\ud" not in json.dumps(value))


@given(JSON, st.randoms(use_true_random=False))
def test_any_value_has_one_fingerprint_however_it_is_written(value: Any, random: Any) -> None:  # IDEM-2
    def shuffled(part: Any) -> Any:
        if isinstance(part, dict):
            members = list(part.items())
            random.shuffle(members)
            return {name: shuffled(inner) for name, inner in members}
        return [shuffled(inner) for inner in part] if isinstance(part, list) else part

    compact = json.dumps(value, separators=(",", ":")).encode()
    spaced = json.dumps(shuffled(value), indent=1, ensure_ascii=False).encode()
    assert fingerprint("POST", ROUTE, compact) == fingerprint("POST", ROUTE, spaced) is not None
