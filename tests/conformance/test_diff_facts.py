"""What of an answer is its shape, and what is data."""

import json
from typing import Any

import pytest

from harness.exchanges import exchanged, http
from tidegate.conformance.diff.facts import read_facts


def _completion(top: dict[str, float]) -> Any:
    choice = {"index": 0, "text": "a", "finish_reason": "stop", "logprobs": {"tokens": ["a"], "top_logprobs": [top]}}
    return {"object": "text_completion", "choices": [choice]}


SAME: dict[str, tuple[Any, Any]] = {
    "tokens of a completion": (_completion({" red": -1.0, " blue": -2.0}), _completion({" green": -1.5})),
    "reasons of refusals": (
        {"admission": {"refusals": {"no_capacity": 1}}},
        {"admission": {"refusals": {"queue_full": 2}}},
    ),
}
OTHER: dict[str, tuple[Any, Any]] = {
    "a member": ({"a": 1, "b": 2}, {"a": 1}),
    "a type": ({"a": 1}, {"a": "1"}),
    "a token's number": (_completion({" red": -1.0}), _completion({" red": "-1.0"})),  # type: ignore[dict-item]
}


def _shape(body: Any) -> Any:
    return read_facts(exchanged(http(200, json.dumps(body).encode()))).shape


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME)
def test_names_that_are_data_are_no_members(pair: tuple[Any, Any]) -> None:
    assert _shape(pair[0]) == _shape(pair[1])


@pytest.mark.parametrize("pair", OTHER.values(), ids=OTHER)
def test_members_and_types_are_the_shape(pair: tuple[Any, Any]) -> None:
    assert _shape(pair[0]) != _shape(pair[1])
