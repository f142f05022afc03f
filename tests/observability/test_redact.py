"""What may stand in a log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.observability.redact import REDACTED, SECRET_FIELDS, clean_text, clean_value

TEXTS = [
    ("plain", "plain"),
    ("zwölf Boxkämpfer 你好", "zwölf Boxkämpfer 你好"),
    ("two\nlines\r\n", "two\\x0alines\\x0d\\x0a"),
    ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
    ("csi \x9b2J", "csi \\x9b2J"),
    ("bidi \u202egnp.exe\u2066", "bidi \\u202egnp.exe\\u2066"),
    ("hidden\u200b\ufeff\U000e0041", "hidden\\u200b\\ufeff\\U000e0041"),
    ("lone \ud800", "lone \\ud800"),
    ("lines \u2028\u2029\x85", "lines \\u2028\\u2029\\x85"),
    ("Authorization: Bearer abc.def-ghi", f"Authorization: {REDACTED}"),
    ("key sk-proj-1234567890 given", f"key {REDACTED} given"),
]


@pytest.mark.parametrize(("text", "shown"), TEXTS)
def test_text_is_shown_like_this(text: str, shown: str) -> None:
    assert clean_text(text) == shown


def test_long_text_is_cut_and_says_so() -> None:
    assert clean_text("a" * 30, 10) == "a" * 10 + "... (20 more)"


@given(st.text())
def test_any_text_becomes_one_visible_line(text: str) -> None:
    shown = clean_text(text)
    assert len(shown.splitlines()) <= 1
    assert all(ord(char) >= 0x20 and not 0x7F <= ord(char) < 0xA0 for char in shown)
    shown.encode()


class Quoting:
    def __repr__(self) -> str:
        return "what the caller said"


VALUES = [
    ("n", 3, 3),
    ("n", 2**80, hex(2**80)),
    ("ok", True, True),
    ("nothing", None, None),
    ("prompt", None, None),
    ("thing", Quoting(), "<Quoting>"),
    ("raw", b"bytes", "<bytes>"),
    ("error", ValueError("a\nb"), "ValueError: a\\x0ab"),
    ("parts", ["a\n", ("b",)], ["a\\x0a", ["b"]]),
    ("facts", {"api_key": "k", "n": 1}, {"api_key": REDACTED, "n": 1}),
    ("deep", [[[[[1]]]]], [[[["<list>"]]]]),
]


@pytest.mark.parametrize(("name", "value", "shown"), VALUES)
def test_a_value_is_shown_like_this(name: str, value: object, shown: object) -> None:
    assert clean_value(name, value) == shown


@pytest.mark.parametrize("name", sorted(SECRET_FIELDS))
def test_some_fields_are_never_shown(name: str) -> None:
    assert clean_value(name.upper(), ["anything"]) == REDACTED


def test_a_wide_value_is_cut() -> None:
    shown = clean_value("list", list(range(1000)))
    assert isinstance(shown, list)
    assert len(shown) == 32
