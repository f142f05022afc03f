"""Stop strings: equal to a search in the whole text, whatever the pieces, and nothing held back without need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.testing.partitions import cut_at, partitions
from tidegate.text.stop_matcher import StopMatcher


def search(text: str, stops: tuple[str, ...]) -> tuple[str, str | None]:
    """The rule, plainly: the earliest end wins, then the longest stop. Returns what comes before, and the stop."""
    found = [(text.find(stop) + len(stop), -len(stop), stop) for stop in stops if stop in text]
    if not found:
        return text, None
    end, _, stop = min(found)
    return text[: end - len(stop)], stop


def feed_all(matcher: StopMatcher, pieces: list[str]) -> str:
    return "".join(map(matcher.feed, pieces)) + matcher.finish()


# text, stops, what is released, the match
MATCHES = [
    ("abc DEFGHIJK", ("DEFGHIJ",), "abc ", "DEFGHIJ"),
    ("aaab", ("aab",), "a", "aab"),
    ("abababac", ("abac",), "abab", "abac"),
    ("xabcd", ("abcd", "bc"), "xa", "bc"),
    ("xabcd", ("bc", "abcd"), "xa", "bc"),
    ("xabc", ("c", "abc", "bc"), "x", "abc"),
    ("UNO DUE TRE", ("TRE\nAAA",), "UNO DUE TRE", None),
    ("a<b</sx", ("</s>",), "a<b</sx", None),
    ("one two three", ("three", "two"), "one ", "two"),
    ("aabaaabaaac", ("aabaaac",), "aaba", "aabaaac"),
    ("é\u0301😀!", ("😀",), "é\u0301", "😀"),
    ("", ("x",), "", None),
    ("STOP", ("STOP",), "", "STOP"),
]


@pytest.mark.parametrize("include_match", [False, True])
@pytest.mark.parametrize(("text", "stops", "before", "match"), MATCHES)
def test_every_cut_finds_the_same_match(
    text: str, stops: tuple[str, ...], before: str, match: str | None, include_match: bool
) -> None:
    assert search(text, stops) == (before, match)
    for pieces in partitions(text):
        matcher = StopMatcher(stops, include_match=include_match)
        released = feed_all(matcher, pieces)
        assert matcher.match == match
        assert released == before + (match if match and include_match else "")


SMALL = st.text(alphabet="ab", max_size=30)
STOPS = st.lists(st.text(alphabet="ab", min_size=1, max_size=6), min_size=1, max_size=4).map(tuple)


@given(text=SMALL, stops=STOPS, places=st.lists(st.integers(0, 30), max_size=8))
def test_it_equals_a_search_in_the_whole_text(text: str, stops: tuple[str, ...], places: list[int]) -> None:
    matcher = StopMatcher(stops, include_match=False)
    released = feed_all(matcher, cut_at(text, [place % (len(text) + 1) for place in places]))
    assert (released, matcher.match) == search(text, stops)


@given(text=SMALL, stops=STOPS)
def test_held_text_is_exactly_the_longest_beginning_of_a_stop(text: str, stops: tuple[str, ...]) -> None:
    matcher = StopMatcher(stops, include_match=False)
    seen = ""
    for character in text:
        matcher.feed(character)
        if matcher.match is not None:
            return
        seen += character
        prefixes = {stop[:length] for stop in stops for length in range(1, len(stop))}
        assert matcher.num_held == max((len(prefix) for prefix in prefixes if seen.endswith(prefix)), default=0)


def test_text_that_cannot_begin_a_stop_is_released_at_once() -> None:
    matcher = StopMatcher(("Observation:",), include_match=False)
    assert [matcher.feed(piece) for piece in ("Hello", " there", " O", "b")] == ["Hello", " there", " ", ""]
    assert matcher.finish() == "Ob"


def test_after_a_match_nothing_is_released() -> None:
    matcher = StopMatcher(("x",), include_match=False)
    assert [matcher.feed("axb"), matcher.feed("c"), matcher.pass_through("d"), matcher.finish()] == ["a", "", "", ""]


def test_without_stops_text_passes() -> None:
    matcher = StopMatcher((), include_match=True)
    assert [matcher.feed("abc"), matcher.pass_through("d"), matcher.finish(), matcher.match] == ["abc", "d", "", None]


def test_an_empty_stop_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        StopMatcher(("a", ""), include_match=False)


def test_no_match_begins_in_text_that_was_passed_through() -> None:
    matcher = StopMatcher(("ab",), include_match=False)
    assert [matcher.feed("a"), matcher.pass_through("a"), matcher.feed("b"), matcher.match] == ["", "aa", "b", None]
    assert [matcher.feed("xab"), matcher.match] == ["x", "ab"]


def test_a_huge_stop_costs_nothing_until_the_text_resembles_it() -> None:  # SEC-26
    matcher = StopMatcher(("a" * 10_000_000,), include_match=False)
    assert matcher.feed("b" * 100) == "b" * 100
    assert matcher.feed("aaab") == "aaab"
    assert max(len(needle.failure) for needle in matcher._needles) <= 4


def test_text_that_keeps_almost_matching_is_released_as_the_match_moves_on() -> None:
    stop = "a" * 2_000 + "b"
    matcher = StopMatcher((stop,), include_match=False)
    released = "".join(matcher.feed("a") for _ in range(20_000)) + matcher.feed("b")
    assert released == "a" * 18_000
    assert matcher.match == stop
