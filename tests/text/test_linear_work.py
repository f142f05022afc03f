"""Reading what a model writes is linear: twice the text, twice the work.

Work in Python is counted in lines. What a library does inside one line, such as a regular expression that backtracks,
is seen in processor time alone: of that the ratio is looked at, with room for a busy machine.
"""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tidegate.parsers.plain import PlainParser
from tidegate.text.byte_tokenizer import ByteVocabulary
from tidegate.text.detokenizer import Detokenizer
from tidegate.text.stop_matcher import StopMatcher

STOPS = ("<tool_call>" * 50, "[a(" * 100 + "!", "\\" * 300 + '"', "a" * 500 + "b")
ADVERSARIAL = ("<tool_call>", "[a(", '"', "\\", '\\"', "a", "<", "{", "<|", "é", "\U0001f600")
"""Openings without an end, quotes and backslashes: what backtracking parsers choke on."""
NUM_CHARACTERS = 1_500
ALLOWED_GROWTH = 2.5


def pieces_of(unit: str, num_characters: int) -> list[str]:
    """Text in pieces of one to seven characters, as tokens come."""
    text = (unit * (num_characters // len(unit) + 1))[:num_characters]
    pieces, at = [], 0
    while at < len(text):
        size = 1 + at % 7
        pieces.append(text[at : at + size])
        at += size
    return pieces


def count_lines(run: Callable[[], object]) -> int:
    """Returns how many lines of Python are carried out."""
    num_lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal num_lines
        num_lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return num_lines


def match_stops(pieces: list[str]) -> int:
    matcher = StopMatcher(STOPS, include_match=False)
    return sum(len(matcher.feed(piece)) for piece in pieces) + len(matcher.finish())


def parse_plain(pieces: list[str]) -> int:
    parser = PlainParser()
    return sum(len(parser.feed(piece)) for piece in pieces) + len(parser.finish())


def detokenize(pieces: list[str]) -> int:
    detokenizer = Detokenizer(ByteVocabulary(), skip_special=True)
    ids = [byte for piece in pieces for byte in piece.encode()]
    return sum(len(detokenizer.feed(token_id)) for token_id in ids) + len(detokenizer.finish())


@pytest.mark.parametrize("unit", ADVERSARIAL, ids=ascii)
@pytest.mark.parametrize("read", [match_stops, parse_plain, detokenize])
def test_twice_the_text_is_at_most_twice_the_work(read: Callable[[list[str]], int], unit: str) -> None:  # SEC-26
    work = []
    for num_characters in (NUM_CHARACTERS, 2 * NUM_CHARACTERS):
        pieces = pieces_of(unit, num_characters)
        work.append(count_lines(lambda given=pieces: read(given)))
    assert work[1] < ALLOWED_GROWTH * work[0], work


def processor_s(run: Callable[[], object]) -> float:
    begun_at = time.thread_time()
    run()
    return time.thread_time() - begun_at


@pytest.mark.parametrize("unit", ADVERSARIAL[:5], ids=ascii)
@pytest.mark.parametrize("read", [match_stops, parse_plain, detokenize])
def test_four_times_the_text_is_far_from_sixteen_times_the_time(  # SEC-26
    read: Callable[[list[str]], int], unit: str
) -> None:
    short, long = pieces_of(unit, 4_000), pieces_of(unit, 16_000)
    ratios = []
    while not ratios or (min(ratios) >= 9 and len(ratios) < 8):
        least = [min(processor_s(lambda given=given: read(given)) for _ in range(2)) for given in (short, long)]
        ratios.append(least[1] / max(least[0], 1e-6))
    assert min(ratios) < 9, ratios


def test_a_megabyte_of_openings_comes_through_whole() -> None:  # SEC-26
    for unit in ("<tool_call>", '\\"'):
        text = "".join(pieces_of(unit, 1_000_000))
        matcher = StopMatcher(("never</tool_call>",), include_match=False)
        assert matcher.feed(text) + matcher.finish() == text
