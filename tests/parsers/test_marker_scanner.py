"""Where the next marker begins: the leftmost, of several at one place the longest, and nothing too early."""

import pytest

from tidegate.parsers.marker_scanner import MarkerScanner

MARKERS = ("<a", "<ab>", "[x]", "b")
FOUND = [
    ("no marker", False, (9, "")),
    ("1 [x] <ab>", False, (2, "[x]")),
    ("1 <ab>", False, (2, "<ab>")),
    ("1 <ax", False, (2, "<a")),
    ("1 <a", False, (2, "")),
    ("1 <a", True, (2, "<a")),
    ("1 <ab", False, (2, "")),
    ("1 <ab", True, (2, "<a")),
    ("1 [x", False, (2, "")),
    ("1 [x", True, (4, "")),
    ("", False, (0, "")),
]


@pytest.mark.parametrize(("text", "is_over", "found"), FOUND)
def test_the_leftmost_and_longest_marker_is_found_once_it_is_certain(
    text: str, is_over: bool, found: tuple[int, str]
) -> None:
    assert MarkerScanner(*MARKERS).find(text, 0, is_over=is_over) == found


MATCHED = [("<ab>", False, "<ab>"), ("<ax", False, "<a"), ("<a", False, None), ("<a", True, "<a"), ("x", False, "")]


@pytest.mark.parametrize(("text", "is_over", "matched"), MATCHED)
def test_at_one_place_the_longest_marker_matches(text: str, is_over: bool, matched: str | None) -> None:
    assert MarkerScanner(*MARKERS).match(text, 0, is_over=is_over) == matched


@pytest.mark.parametrize(
    ("text", "is_begun", "is_mostly"), [("<", True, False), ("<ab", True, True), ("<ab>", False, False)]
)
def test_a_begun_marker_is_mostly_there_behind_its_half(text: str, is_begun: bool, is_mostly: bool) -> None:
    scanner = MarkerScanner("<ab>")
    assert (scanner.is_begun(text), scanner.is_mostly(text)) == (is_begun, is_mostly)
