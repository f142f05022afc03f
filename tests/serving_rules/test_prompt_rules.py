"""Prompts of a completion, and the one source of a tokenize request."""

import json
from typing import Any

import pytest

from tidegate.contract.bounds import Limits
from tidegate.contract.codec import decode_completion, decode_tokenize
from tidegate.contract.completion import CompletionRequest
from tidegate.errors import InvalidRequest, InvalidValue, UnsupportedParameter
from tidegate.serving.prompt_rules import check_detokenize, check_tokenize, num_prompts, prompts_of, text_to_tokenize
from tidegate.serving.request_policy import RequestPolicy


def request_of(prompt: Any) -> CompletionRequest:
    return decode_completion(json.dumps({"model": "m", "prompt": prompt}).encode(), Limits())


GOOD: list[tuple[Any, list[Any]]] = [
    ("a", ["a"]),
    (["a", "b"], ["a", "b"]),
    ([5, 6, 7], [[5, 6, 7]]),
    ([[1], [2, 3]], [[1], [2, 3]]),
    (["a", [2]], ["a", [2]]),
    ([299], [[299]]),
]


@pytest.mark.parametrize(("prompt", "expected"), GOOD)
def test_prompts_are_told_apart(prompt: Any, expected: list[Any]) -> None:
    assert prompts_of(request_of(prompt), vocab_size=300) == expected
    assert num_prompts(request_of(prompt)) == len(expected)


BAD: list[tuple[Any, str]] = [
    ("", "prompt"),
    ([], "prompt"),
    ([""], "prompt[0]"),
    ([[]], "prompt[0]"),
    (["a", ""], "prompt[1]"),
    ([[1], []], "prompt[1]"),
    ([-1], "prompt[0]"),
    ([300], "prompt[0]"),
    ([5, 2**80], "prompt[1]"),
    ([2**80, -1], "prompt[0]"),
    ([[1, 300]], "prompt[0][1]"),
    ([[1], [5, 5, 300]], "prompt[1][2]"),
    ([1, "a"], "prompt[0]"),
    (["a", 1], "prompt[1]"),
    ([[1], 1], "prompt[1]"),
]


@pytest.mark.parametrize(("prompt", "param"), BAD)
def test_a_prompt_that_is_empty_mixed_or_outside_the_vocabulary_is_refused(prompt: Any, param: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        prompts_of(request_of(prompt), vocab_size=300)
    assert raised.value.param == param


def tokenize(**members: Any) -> str | None:
    request = decode_tokenize(json.dumps(members).encode(), Limits())
    check_tokenize(request, RequestPolicy())
    return text_to_tokenize(request)


TOOL = {"type": "function", "function": {"name": "f"}}
HI = [{"role": "user", "content": "hi"}]
FINAL = [*HI, {"role": "assistant", "content": "x"}]


def test_text_to_tokenize_has_two_names() -> None:
    assert tokenize(prompt="a") == tokenize(text="a", model="m") == "a"
    assert tokenize(text="") == ""


def test_a_chat_to_tokenize_has_no_text() -> None:
    assert tokenize(messages=HI, tools=[TOOL]) is None
    assert tokenize(messages=HI, tools=[], add_generation_prompt=True) is None
    assert tokenize(messages=FINAL, continue_final_message=True) is None


REFUSED = [
    ({}, "prompt"),
    ({"text": "a", "prompt": "b"}, "text"),
    ({"prompt": "a", "messages": HI}, "messages"),
    ({"messages": HI, "continue_final_message": True}, "continue_final_message"),
    ({"messages": HI, "chat_template_kwargs": {"tools": []}}, "chat_template_kwargs"),
    ({"messages": HI, "chat_template": "x"}, "chat_template"),
    ({"messages": HI, "tools": [TOOL, TOOL]}, "tools[1].function.name"),
    ({"messages": [{"role": "assistant"}]}, "messages[0].content"),
]


@pytest.mark.parametrize(("members", "param"), REFUSED)
def test_a_tokenize_request_has_exactly_one_well_formed_source(members: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        tokenize(**members)
    assert raised.value.param == param


IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"messages": [IMAGE]}, "messages[0].content[0]"),
    ],
)
def test_a_tokenize_request_for_what_is_not_served_is_422(members: dict[str, Any], param: str) -> None:
    with pytest.raises(UnsupportedParameter) as raised:
        tokenize(**members)
    assert raised.value.param == param


def test_tokens_to_detokenize_are_in_the_vocabulary() -> None:
    check_detokenize([0, 299], 300)
    with pytest.raises(InvalidValue) as raised:
        check_detokenize([0, 300], 300)
    assert raised.value.param == "tokens[1]"
