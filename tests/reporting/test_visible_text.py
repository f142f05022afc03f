"""What cannot be seen is spelled out."""

import pytest

from tidegate.reporting.visible_text import one_line, split_unseen, visible

UNSEEN = {
    "escape": ("\x1b[31m", "\\u001b[31m"),
    "nul": ("a\0b", "a\\u0000b"),
    "return": ("a\r\n", "a\\r\\n"),
    "right to left": ("\u202eabc\u202c", "\\u202eabc\\u202c"),
    "isolate": ("\u2066x\u2069", "\\u2066x\\u2069"),
    "no width": ("a\u200bb\u200d\ufeff", "a\\u200bb\\u200d\\ufeff"),
    "separators": ("\u2028\u2029\x85", "\\u2028\\u2029\\u0085"),
    "half a pair": ("\ud800", "\\ud800"),
    "tag": ("\U000e0041", "\\U000e0041"),
    "seen": ("grün 日本 🙂 שלום \\u0041", "grün 日本 🙂 שלום \\u0041"),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_unseen_characters_are_spelled_and_others_stay(name: str) -> None:
    raw, expected = UNSEEN[name]
    assert visible(raw) == expected
    assert "".join(part for _, part in split_unseen(raw, keeps="")) == expected


def test_characters_may_be_kept() -> None:
    assert visible("a\tb\nc\r", keeps="\n\t") == "a\tb\nc\\r"
    assert split_unseen("a\n\0b") == [(False, "a\n"), (True, "\\u0000"), (False, "b")]


def test_a_line_is_one_line_and_bounded() -> None:
    assert one_line("a\r\nb\tc\0", 80) == "a b c\\u0000"
    assert one_line("x" * 90, 80) == "x" * 79 + "…"
