"""Each range at its ends and just outside."""

import json
from typing import Any

import pytest

from tidegate.contract.bounds import Limits
from tidegate.contract.codec import decode_chat, decode_completion
from tidegate.errors import InvalidValue

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
COMPLETION = {"model": "m", "prompt": "a"}
TINY = 1e-9
BIG = 2**53

# field, values that are in range, values that are just outside
SHARED: list[tuple[str, list[Any], list[Any]]] = [
    ("temperature", [0, 0.0, 1, 2, 2.0], [-TINY, 2 + TINY, 5, -1]),
    ("top_p", [TINY, 1, 1.0], [0, 0.0, -0.1, 1 + TINY]),
    ("top_k", [-1, 0, 1, BIG - 1], [-2, BIG]),
    ("min_p", [0, 1], [-TINY, 1 + TINY]),
    ("presence_penalty", [-2, 0, 2], [-2 - TINY, 2 + TINY]),
    ("frequency_penalty", [-2, 0, 2], [-2 - TINY, 2 + TINY]),
    ("repetition_penalty", [TINY, 1, 2], [0, -1, 2 + TINY]),
    ("n", [1, 128], [0, -1, BIG]),
    ("seed", [-(2**63), -5, 0, 2**63 - 1], [-(2**63) - 1, 2**63]),
    ("max_tokens", [1, BIG - 1], [-1, BIG]),
    ("min_tokens", [0, 5], [-1, BIG]),
    ("prompt_logprobs", [0, 20], [-1, 21, 100_000]),
    ("priority", [-100, 0, 100], [-101, 101]),
    ("logit_bias", [{}, {"5": 100}, {"5": -100}, {"5": 0.5}], [{"5": 100.5}, {"5": -101}]),
    ("stop_token_ids", [[], [0, 5]], [[-1], [BIG]]),
    ("allowed_token_ids", [[0, 5]], [[-1], [BIG]]),
    ("deadline_ms", [1, 60_000], [0, -1]),
    ("first_token_deadline_ms", [1], [0]),
    ("cache_salt", ["a", "!~" * 128], ["", "a" * 257, "a b", "é", "a\n"]),
    ("user", ["", "u" * 512, "Jürgen"], ["u" * 513, "a\nb", "\x7f"]),
]
CHAT_ONLY: list[tuple[str, list[Any], list[Any]]] = [
    ("top_logprobs", [0, 20], [-1, 21]),
    ("max_completion_tokens", [1], [0, -1]),
    ("metadata", [{}, {"k" * 64: "v" * 512}, {str(i): "" for i in range(16)}], [{"k": "v" * 513}, {"k" * 65: ""}]),
    ("metadata", [None], [{str(i): "" for i in range(17)}]),
    ("safety_identifier", ["s" * 64], ["s" * 65, "\x00"]),
    ("prompt_cache_key", ["k" * 512], ["k" * 513]),
    ("reasoning_effort", ["none", "minimal", "low", "medium", "high", "xhigh", "max"], ["huge", ""]),
    ("verbosity", ["low", "medium", "high"], ["loud"]),
    ("service_tier", ["auto", "default", "flex", "scale", "priority", "fast"], ["slow"]),
    ("modalities", [["text"], ["text", "audio"]], [["video"]]),
]
COMPLETION_ONLY: list[tuple[str, list[Any], list[Any]]] = [
    ("logprobs", [0, 5], [-1, 6, 100]),
    ("max_tokens", [0], [-1]),
    ("best_of", [1, 20], [0, 21]),
]


def cases(inside: bool) -> list[tuple[str, str, Any]]:
    tables = [("chat", SHARED + CHAT_ONLY), ("completion", SHARED + COMPLETION_ONLY)]
    return [
        (route, field, value)
        for route, table in tables
        for field, good, bad in table
        for value in (good if inside else bad)
    ]


def decode(route: str, field: str, value: Any) -> Any:
    if route == "chat":
        return decode_chat(json.dumps({**CHAT, field: value}).encode(), Limits())
    return decode_completion(json.dumps({**COMPLETION, field: value}).encode(), Limits())


@pytest.mark.parametrize(("route", "field", "value"), cases(inside=True))
def test_a_value_in_its_range_is_taken(route: str, field: str, value: Any) -> None:
    assert getattr(decode(route, field, value), field) == value


@pytest.mark.parametrize(("route", "field", "value"), cases(inside=False))
def test_a_value_just_outside_is_refused_by_name(route: str, field: str, value: Any) -> None:
    with pytest.raises(InvalidValue) as raised:
        decode(route, field, value)
    assert (raised.value.param or "").split("[")[0] == field


NUMBERS = [field for field, good, _ in SHARED if isinstance(good[0], int | float)]


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize("value", ["1", "", True, False, [1], {}, [], 1e308, -1e308, 10**30, -(10**30)])
def test_nothing_but_a_number_in_range_is_a_number(field: str, value: Any) -> None:
    with pytest.raises(InvalidValue) as raised:
        decode("chat", field, value)
    assert raised.value.param == field


@pytest.mark.parametrize("field", ["n", "seed", "max_tokens", "top_k", "min_tokens", "priority", "prompt_logprobs"])
@pytest.mark.parametrize("value", [1.0, 1.5, -0.5])
def test_an_integer_has_no_fraction(field: str, value: float) -> None:
    with pytest.raises(InvalidValue) as raised:
        decode("chat", field, value)
    assert raised.value.param == field
