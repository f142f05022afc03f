"""Checks of answers where no broken server reaches them: what they may not accuse, and when nobody can tell."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.exchanges import answered, exchanged
from harness.made_report import make_exchange, stream
from tidegate.conformance.answer import Choice
from tidegate.conformance.checks.choices import are_drawn_each, are_same, chance_of
from tidegate.conformance.checks.generation import generates
from tidegate.conformance.checks.logprob_entries import has_chosen_on_top, has_entry_per_token, has_top
from tidegate.conformance.checks.same_answer import has_same_usage, is_like_repeated
from tidegate.conformance.checks.stops import (
    NEVER_SAID,
    take_nested_stops,
    take_stop,
    take_unfinished_stop,
    text_before,
)
from tidegate.conformance.checks.stream_framing import arrives_over_time
from tidegate.conformance.checks.tool_calls import cut_is_honest
from tidegate.conformance.checks.unicode_text import says_in_json
from tidegate.conformance.checks.usage import is_cut_at, says_that_it_was_cut
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Ending, Exchange

CANNOT_TELL = "cannot tell"
RIGHT = "right"
WRONG = "wrong"


def outcome(check: Callable[..., Iterator[Fault]], *exchanges: Exchange, **args: Any) -> str:
    """Returns what the check says: right, wrong, or that it cannot tell."""
    try:
        return WRONG if list(check(*exchanges, **args)) else RIGHT
    except CannotTell:
        return CANNOT_TELL


def said(*texts: str, finish: str = "stop", tokens: int = 4, asked: Any = None, **members: Any) -> Exchange:
    """Returns a chat answer with these choices."""
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "finish_reason": finish,
            "logprobs": members.get("logprobs"),
        }
        for index, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens, **members.get("details", {})}
    exchange = answered(200, {"choices": choices, "usage": usage})
    return Exchange(**{**_fields(exchange), "request_json": asked or {}})


def _fields(exchange: Exchange) -> dict[str, Any]:
    return {name: getattr(exchange, name) for name in Exchange.__dataclass_fields__}


def entry(token: str, logprob: float, *top: tuple[str, float]) -> dict[str, Any]:
    """Returns an entry of logprobs."""
    others = [{"token": text, "logprob": value, "bytes": list(text.encode())} for text, value in top]
    return {"token": token, "logprob": logprob, "bytes": list(token.encode()), "top_logprobs": others}


@pytest.mark.parametrize(
    ("finish", "tokens", "expected"),
    [
        ("length", 4, RIGHT),
        ("length", 5, WRONG),
        ("stop", 5, WRONG),
        ("length", 3, WRONG),
        ("stop", 3, CANNOT_TELL),
        ("stop", 4, CANNOT_TELL),
        ("content_filter", 4, CANNOT_TELL),
    ],
)
def test_a_cut_is_exact_and_a_natural_end_tells_nothing(finish: str, tokens: int, expected: str) -> None:
    found = outcome(is_cut_at, said("x", finish=finish, tokens=tokens), num_tokens=4)
    assert found == expected


@pytest.mark.parametrize(
    ("short", "longer", "expected"),
    [
        (said("Red", finish="stop"), said("Red, blue"), WRONG),
        (said("Red", finish="length"), said("Red, blue"), RIGHT),
        (said("Red", finish="stop"), said("Red"), CANNOT_TELL),
        (said("Red", finish="stop"), said("Blue, red"), CANNOT_TELL),
    ],
    ids=["hidden cut", "told cut", "no cut", "another answer"],
)
def test_a_cut_is_seen_by_a_longer_answer(short: Exchange, longer: Exchange, expected: str) -> None:
    assert outcome(says_that_it_was_cut, short, longer) == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("a", "a", "a"), RIGHT),
        (("a", "a", "b"), WRONG),
        (("a", "b", "b"), CANNOT_TELL),
        (("a", "b", "a"), CANNOT_TELL),
    ],
)
def test_a_server_that_does_not_repeat_itself_is_not_accused(texts: tuple[str, ...], expected: str) -> None:
    assert outcome(is_like_repeated, *(said(text) for text in texts)) == expected


def test_usage_of_different_answers_is_not_compared() -> None:
    assert outcome(has_same_usage, said("a", tokens=3), said("b", tokens=4)) == CANNOT_TELL
    assert outcome(has_same_usage, said("a", tokens=3), said("a", tokens=4)) == WRONG
    assert outcome(has_same_usage, said("a", tokens=3), said("a", tokens=3)) == RIGHT


@pytest.mark.parametrize(
    ("whole", "again", "streamed", "expected"),
    [
        ("aa", "aa", "aa", RIGHT),
        ("ab", "ab", "aa", WRONG),
        ("aa", "aa", "ab", WRONG),
        ("ab", "aa", "aa", CANNOT_TELL),
        ("aa", "ab", "ab", CANNOT_TELL),
    ],
)
def test_greedy_choices_may_differ_once_by_rounding(whole: str, again: str, streamed: str, expected: str) -> None:
    assert outcome(are_same, said(*whole), said(*again), said(*streamed)) == expected


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry("a", -5.0, ("a", -5.0))] * 4, WRONG),
        ([entry("a", -0.1, ("a", -0.1))] * 4, CANNOT_TELL),
        ([], CANNOT_TELL),
        ([entry("a", -1.0)] * 9, CANNOT_TELL),
    ],
    ids=["improbable", "probable", "no entries", "no alternatives"],
)
def test_equal_samples_are_a_fault_only_where_they_are_improbable(entries: list[Any], expected: str) -> None:
    answer = said("a", "a", "a", asked={"temperature": 1}, logprobs={"content": entries})
    assert outcome(are_drawn_each, answer) == expected


def test_samples_that_differ_are_right_without_a_number() -> None:
    assert outcome(are_drawn_each, said("a", "b", asked={"temperature": 1})) == RIGHT
    assert outcome(are_drawn_each, said("a", asked={"temperature": 1})) == CANNOT_TELL


def test_the_chance_of_a_repetition_is_a_bound_at_any_temperature() -> None:
    logits = {"a": 2.0, "b": 0.5, "c": -1.0}

    def distribution(temperature: float) -> dict[str, float]:
        weights = {token: math.exp(value / temperature) for token, value in logits.items()}
        return {token: weight / sum(weights.values()) for token, weight in weights.items()}

    plain = distribution(1.0)
    best = max(plain, key=plain.__getitem__)
    for temperature in (1.0, 1.5, 2.0):
        sampled = distribution(temperature)
        for token in logits:
            scored = entry(token, math.log(plain[token]), (best, math.log(plain[best])))
            assert chance_of(Choice(0, logprobs=[scored]), temperature) >= sampled[token] * (1 - 1e-9)


@pytest.mark.parametrize(
    ("num_entries", "finish", "details", "expected"),
    [
        (4, "length", {}, RIGHT),
        (3, "length", {}, WRONG),
        (5, "length", {}, WRONG),
        (3, "stop", {}, RIGHT),
        (2, "stop", {}, RIGHT),
        (1, "stop", {}, WRONG),
        (1, "length", {"completion_tokens_details": {"reasoning_tokens": 3}}, CANNOT_TELL),
    ],
)
def test_entries_are_counted_where_tokens_can_be(num_entries: int, finish: str, details: Any, expected: str) -> None:
    logprobs = {"content": [entry("a", -0.1)] * num_entries}
    assert outcome(has_entry_per_token, said("aaaa", finish=finish, logprobs=logprobs, details=details)) == expected


def test_fewer_alternatives_are_allowed_here_and_there_but_not_everywhere() -> None:
    full, less = entry("a", -0.1, ("a", -0.1), ("b", -3.0)), entry("a", -0.1, ("a", -0.1))
    mixed = said("aa", logprobs={"content": [full, less]})
    assert outcome(has_top, mixed, num_top=2, is_exact=False) == RIGHT
    assert outcome(has_top, mixed, num_top=2) == WRONG
    assert outcome(has_top, said("aa", logprobs={"content": [less, less]}), num_top=2, is_exact=False) == WRONG
    assert outcome(has_top, mixed, num_top=1, is_exact=False) == WRONG


def test_tokens_that_are_as_likely_may_be_chosen_either_way() -> None:
    tie = entry("b", -0.71, ("a", -0.69), ("b", -0.71))
    assert outcome(has_chosen_on_top, said("b", logprobs={"content": [tie]})) == RIGHT
    worse = entry("b", -2.0, ("a", -0.15), ("b", -2.0))
    assert outcome(has_chosen_on_top, said("b", logprobs={"content": [worse]})) == CANNOT_TELL


@pytest.mark.parametrize(
    ("text", "stops", "expected"),
    [
        ("abcdef", ["cd"], ("ab", "cd")),
        ("abcdef", ["ef", "bc"], ("a", "bc")),
        ("abcdef", ["bcdef", "d"], ("abc", "d")),
        ("abcdef", ["abc", "bc"], ("", "abc")),
        ("abcdef", ["xy"], None),
        ("aaab", ["ab"], ("aa", "ab")),
        ("", ["a"], None),
    ],
)
def test_the_stop_that_completes_first_ends_the_text(text: str, stops: list[str], expected: Any) -> None:
    assert text_before(text, stops) == expected


def test_stops_are_cut_out_of_an_answer_where_they_stand_first() -> None:
    assert take_stop(said("Hello from the engine"), start=5, length=4) == "from"
    assert take_unfinished_stop(said("Hello"), length=3) == "llo" + NEVER_SAID
    outer, inner = take_nested_stops(said("Hello from the engine"))
    assert inner in outer[1:]
    for text in ("", "short", "aaaaaaaaaaaaaaaaaaaa", "\ufffd" * 20):
        with pytest.raises(CannotTell):
            take_stop(said(text), start=5, length=4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"t": "é"}', RIGHT),
        ('{"t": "\\u00e9"}', RIGHT),
        ('{"t": "e\u0301"}', WRONG),
        ('{"t": "\ufffd"}', WRONG),
        ('{"t": "e"}', CANNOT_TELL),
        ('{"t": "é', CANNOT_TELL),
        ("Certainly: \ufffd is a letter.", CANNOT_TELL),
    ],
)
def test_a_model_that_does_not_keep_its_schema_tells_nothing_of_characters(text: str, expected: str) -> None:
    assert outcome(says_in_json, said(text), text="é") == expected


def _streamed(times: list[float], duration_s: float, member: str = "content") -> Exchange:
    chunk = f'{{"choices":[{{"index":0,"delta":{{"{member}":"x"}},"finish_reason":null}}]}}'
    last = '{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}'
    events = [(at_s, chunk) for at_s in times]
    return make_exchange(stream([*events, (duration_s, last), (duration_s, "[DONE]")]), duration_s=duration_s)


@pytest.mark.parametrize(
    ("times", "duration_s", "member", "expected"),
    [
        ([0.1, 0.4, 0.7, 1.0], 1.0, "content", RIGHT),
        ([1.0, 1.0, 1.0, 1.0], 1.0, "content", WRONG),
        ([0.1, 0.11, 0.12], 0.12, "content", CANNOT_TELL),
        ([0.1, 0.4, 0.7, 1.0], 1.0, "reasoning_content", RIGHT),
    ],
    ids=["flows", "held back", "too fast", "reasons"],
)
def test_a_stream_is_held_back_only_where_its_tokens_took_time(
    times: list[float], duration_s: float, member: str, expected: str
) -> None:
    short = _streamed([0.1], 0.1)
    assert outcome(arrives_over_time, short, _streamed(times, duration_s, member), short) == expected


def test_a_slow_answer_is_not_accused_and_one_that_never_ends_is() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    slow = exchanged(head, ending=Ending.TIMED_OUT, detail="after 60 s")
    assert outcome(generates, slow) == CANNOT_TELL
    open_ended = exchanged(head, b"e\r\ndata: [DONE]\n\n\r\n", ending=Ending.TIMED_OUT)
    assert outcome(generates, open_ended) == WRONG


def test_a_queue_before_the_first_token_is_no_buffering() -> None:
    queued = _streamed([2.0, 2.01, 2.02], 2.02)
    assert outcome(arrives_over_time, _streamed([2.0], 2.0), queued, _streamed([1.0], 1.0)) == CANNOT_TELL


@pytest.mark.parametrize(
    ("finish", "tokens", "expected"),
    [
        ("length", 8, RIGHT),
        ("stop", 8, WRONG),
        ("stop", 5, CANNOT_TELL),
        ("stop", 11, CANNOT_TELL),
    ],
)
def test_an_answer_beyond_its_limit_was_not_cut(finish: str, tokens: int, expected: str) -> None:
    assert outcome(cut_is_honest, said("I pick red", finish=finish, tokens=tokens), budget=8) == expected
