"""Tokenize routes of any server: what may be told of them, and what tells nothing."""

from typing import Any

import pytest

from harness.exchanges import answered
from tidegate.conformance.checks.tokenizer_dialects import count_is_the_prompts, gives_text_back, path_there
from tidegate.conformance.verdict import CannotTell

RIGHT = "right"
WRONG = "wrong"
CANNOT_TELL = "cannot tell"


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, {"text": "a b\u00e9"}, RIGHT),
        (200, {"content": "a b\u00e9"}, RIGHT),
        (200, {"prompt": "a b\u00e9"}, RIGHT),
        (200, {"text": " a b\u00e9"}, CANNOT_TELL),
        (200, {"text": "A be\u0301"}, CANNOT_TELL),
        (200, {"text": "a be"}, WRONG),
        (200, {"text": ""}, WRONG),
        (200, {"words": "a b\u00e9"}, WRONG),
        (500, {"text": "a b\u00e9"}, WRONG),
    ],
)
def test_only_lost_or_other_characters_are_a_fault(status: int, body: Any, expected: str) -> None:
    try:
        found = WRONG if list(gives_text_back(answered(status, body), text="a b\u00e9")) else RIGHT
    except CannotTell:
        found = CANNOT_TELL
    assert found == expected


def test_the_first_place_that_gives_ids_is_taken_and_none_tells_nothing() -> None:
    nowhere = answered(404, {"detail": "Not Found"})
    with pytest.raises(CannotTell):
        path_there(nowhere, answered(200, {"tokens": []}), answered(200, {"tokens": ["a"]}))
    assert path_there(nowhere, answered(200, {"tokens": [1]})).startswith("/")


@pytest.mark.parametrize(("told", "expected"), [(3, 0), (2, 0), (4, 1), (1, 1)])
def test_a_completion_reads_the_tokens_with_or_without_those_that_are_added(told: int, expected: int) -> None:
    full, bare = answered(200, {"tokens": [1, 40, 41]}), answered(200, {"tokens": [40, 41]})
    usage = {"prompt_tokens": told, "completion_tokens": 1, "total_tokens": told + 1}
    generated = answered(200, {"choices": [{"index": 0, "text": "a"}], "usage": usage})
    assert len(list(count_is_the_prompts(full, bare, generated))) == expected
