"""From contract fields to sampling, stop rules, log-probability counts and the token budget."""

import json
from typing import Any

import pytest

from tidegate.contract.bounds import Limits
from tidegate.contract.chat import ChatRequest
from tidegate.contract.codec import decode_chat, decode_completion
from tidegate.contract.completion import CompletionRequest
from tidegate.errors import ContextLengthExceeded, InvalidValue
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.serving.sampling_rules import (
    LogprobCounts,
    StopStrings,
    check_choosable,
    check_token_ids,
    logprob_counts,
    sampling_params,
    stop_rules,
    stop_strings,
    token_budget,
)

VOCAB_SIZE = 300


def chat(**members: Any) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **members}
    return decode_chat(json.dumps(body).encode(), Limits())


def completion(**members: Any) -> CompletionRequest:
    return decode_completion(json.dumps({"model": "m", "prompt": "a", **members}).encode(), Limits())


def sample(**members: Any) -> SamplingParams:
    request = chat(**members)
    return sampling_params(request, vocab_size=VOCAB_SIZE, encode=lambda text: list(text.encode()), minted_seed=77)


def test_absent_fields_have_the_public_defaults_and_the_minted_seed() -> None:
    assert sample() == SamplingParams(seed=77)
    assert sample() == SamplingParams(1.0, 1.0, 0, 0.0, 0.0, 0.0, 1.0, 77, (), None, ())


CARRIED = [
    ({"temperature": 0}, {"temperature": 0.0}),
    ({"temperature": 2, "top_p": 0.5}, {"temperature": 2.0, "top_p": 0.5}),
    ({"top_k": -1}, {"top_k": 0}),
    ({"top_k": 0}, {"top_k": 0}),
    ({"top_k": 5}, {"top_k": 5}),
    ({"top_k": 2**50}, {"top_k": VOCAB_SIZE}),
    ({"min_p": 0.1}, {"min_p": 0.1}),
    ({"presence_penalty": -2, "frequency_penalty": 2}, {"presence_penalty": -2.0, "frequency_penalty": 2.0}),
    ({"repetition_penalty": 1.5}, {"repetition_penalty": 1.5}),
    ({"seed": 0}, {"seed": 0}),
    ({"seed": -(2**63)}, {"seed": -(2**63)}),
    ({"logit_bias": {"0": -100, "299": 100}}, {"logit_bias": ((0, -100.0), (299, 100.0))}),
    ({"logit_bias": {}}, {"logit_bias": ()}),
    ({"allowed_token_ids": [5, 299, 5]}, {"allowed_token_ids": (5, 299)}),
    ({"bad_words": ["a", "bc"]}, {"bad_words": ((97,), (32, 97), (98, 99), (32, 98, 99))}),
    ({"bad_words": [" a", "a"]}, {"bad_words": ((32, 97), (97,))}),
    ({"bad_words": []}, {"bad_words": ()}),
]


@pytest.mark.parametrize(("members", "expected"), CARRIED)
def test_a_field_is_carried_over(members: dict[str, Any], expected: dict[str, Any]) -> None:
    found = sample(**members)
    assert {name: getattr(found, name) for name in expected} == expected


OUTSIDE = [
    ({"logit_bias": {"-1": 1}}, "logit_bias"),
    ({"logit_bias": {"300": 1}}, "logit_bias"),
    ({"logit_bias": {"a": 1}}, "logit_bias"),
    ({"logit_bias": {"": 1}}, "logit_bias"),
    ({"logit_bias": {"05": 1}}, "logit_bias"),
    ({"logit_bias": {"+5": 1}}, "logit_bias"),
    ({"logit_bias": {" 5": 1}}, "logit_bias"),
    ({"logit_bias": {"٥": 1}}, "logit_bias"),
    ({"logit_bias": {"²": 1}}, "logit_bias"),
    ({"logit_bias": {"1e2": 1}}, "logit_bias"),
    ({"logit_bias": {"9" * 10_000: 1}}, "logit_bias"),
    ({"allowed_token_ids": []}, "allowed_token_ids"),
    ({"allowed_token_ids": [0, 300]}, "allowed_token_ids[1]"),
    ({"bad_words": [""]}, "bad_words"),
    ({"bad_words": ["a"] * 1025}, "bad_words"),
]


@pytest.mark.parametrize(("members", "param"), OUTSIDE)
def test_what_is_outside_the_vocabulary_is_refused(members: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        sample(**members)
    assert raised.value.param == param
    assert len(raised.value.message) < 300


@pytest.mark.parametrize("token_ids", [[-1], [300], [0, 2**52], [5, -3]])
def test_token_ids_are_checked_against_the_vocabulary(token_ids: list[int]) -> None:
    with pytest.raises(InvalidValue):
        check_token_ids("prompt", token_ids, VOCAB_SIZE)
    check_token_ids("prompt", [0, 299], VOCAB_SIZE)
    check_token_ids("prompt", [], VOCAB_SIZE)


def test_stop_rules_are_carried_over() -> None:
    request = chat(min_tokens=3, stop_token_ids=[7, 299, 7], ignore_eos=True)
    assert stop_rules(request, max_tokens=3, vocab_size=VOCAB_SIZE) == StopRules(3, 3, (7, 299), True)
    assert stop_rules(chat(), max_tokens=9, vocab_size=VOCAB_SIZE) == StopRules(9)


@pytest.mark.parametrize(
    ("members", "param"), [({"min_tokens": 4}, "min_tokens"), ({"stop_token_ids": [300]}, "stop_token_ids[0]")]
)
def test_stop_rules_that_cannot_hold_are_refused(members: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        stop_rules(chat(**members), max_tokens=3, vocab_size=VOCAB_SIZE)
    assert raised.value.param == param


STOPS = [
    ({}, StopStrings()),
    ({"stop": None}, StopStrings()),
    ({"stop": []}, StopStrings()),
    ({"stop": "a"}, StopStrings(("a",))),
    ({"stop": ["b", "a", "b"]}, StopStrings(("b", "a"))),
    ({"stop": "a", "include_stop_str_in_output": True, "min_tokens": 2}, StopStrings(("a",), True, 2)),
]


@pytest.mark.parametrize(("members", "expected"), STOPS)
def test_stop_strings(members: dict[str, Any], expected: StopStrings) -> None:
    assert stop_strings(chat(**members)) == expected


COUNTS: list[tuple[ChatRequest | CompletionRequest, LogprobCounts]] = [
    (chat(), LogprobCounts()),
    (chat(logprobs=False), LogprobCounts()),
    (chat(logprobs=True), LogprobCounts(0)),
    (chat(logprobs=True, top_logprobs=0), LogprobCounts(0)),
    (chat(logprobs=True, top_logprobs=20), LogprobCounts(20)),
    (chat(prompt_logprobs=3), LogprobCounts(None, 3, returns_prompt=True)),
    (completion(), LogprobCounts()),
    (completion(echo=True), LogprobCounts()),
    (completion(logprobs=0), LogprobCounts(0)),
    (completion(logprobs=5), LogprobCounts(5)),
    (completion(logprobs=2, echo=True), LogprobCounts(2, 2)),
    (completion(logprobs=5, echo=True, prompt_logprobs=1), LogprobCounts(5, 5, returns_prompt=True)),
]


@pytest.mark.parametrize(("request_", "expected"), COUNTS)
def test_logprob_counts(request_: ChatRequest | CompletionRequest, expected: LogprobCounts) -> None:
    assert logprob_counts(request_) == expected


def budget(request: ChatRequest | CompletionRequest, num_prompt_tokens: int, cap: int | None = None) -> int:
    return token_budget(
        request, num_prompt_tokens=num_prompt_tokens, max_model_len=100, limits=Limits(max_output_tokens=cap)
    )


BUDGETS: list[tuple[ChatRequest | CompletionRequest, int, int | None, int]] = [
    (chat(), 10, None, 90),
    (chat(), 99, None, 1),
    (chat(), 10, 50, 50),
    (chat(), 80, 50, 20),
    (completion(), 10, None, 90),
    (chat(max_tokens=90), 10, None, 90),
    (chat(max_tokens=50), 10, 50, 50),
    (chat(max_completion_tokens=3, max_tokens=50), 10, None, 3),
    (chat(max_completion_tokens=3, max_tokens=5000), 10, None, 3),
    (completion(max_tokens=0, echo=True), 10, None, 0),
    (completion(max_tokens=0, echo=True), 100, None, 0),
]


@pytest.mark.parametrize(("request_", "num_prompt_tokens", "cap", "expected"), BUDGETS)
def test_the_token_budget(
    request_: ChatRequest | CompletionRequest, num_prompt_tokens: int, cap: int | None, expected: int
) -> None:
    assert budget(request_, num_prompt_tokens, cap) == expected


TOO_LONG: list[tuple[ChatRequest | CompletionRequest, int, str, int]] = [
    (chat(max_tokens=91), 10, "max_tokens", 101),
    (chat(max_completion_tokens=91), 10, "max_completion_tokens", 101),
    (chat(max_tokens=2**50), 10, "max_tokens", 2**50 + 10),
    (chat(), 100, "messages", 101),
    (chat(max_tokens=5), 100, "messages", 105),
    (chat(max_tokens=5), 1000, "messages", 1005),
    (completion(), 100, "prompt", 101),
    (completion(max_tokens=0, echo=True), 101, "prompt", 101),
]


@pytest.mark.parametrize(("request_", "num_prompt_tokens", "param", "actual"), TOO_LONG)
def test_what_does_not_fit_the_context_is_refused_with_both_numbers(
    request_: ChatRequest | CompletionRequest, num_prompt_tokens: int, param: str, actual: int
) -> None:
    with pytest.raises(ContextLengthExceeded) as raised:
        budget(request_, num_prompt_tokens)
    limit = raised.value.limit
    assert limit is not None
    assert (raised.value.param, limit.name, limit.value, limit.actual) == (param, "context_length", 100, actual)


def test_more_output_than_the_server_allows_is_refused_by_name() -> None:
    with pytest.raises(InvalidValue) as raised:
        budget(chat(max_tokens=51), 10, cap=50)
    limit = raised.value.limit
    assert limit is not None
    assert (raised.value.param, limit.name, limit.value, limit.actual) == ("max_tokens", "max_output_tokens", 50, 51)


UNCHOOSABLE = [
    ({"allowed_token_ids": [97], "bad_words": ["a"]}, "allowed_token_ids"),
    ({"allowed_token_ids": [257], "min_tokens": 1}, "allowed_token_ids"),
    ({"allowed_token_ids": [97, 98], "stop_token_ids": [98, 97], "min_tokens": 1}, "allowed_token_ids"),
    (
        {"bad_words": [chr(code) for code in range(128)], "stop_token_ids": list(range(128, 300)), "min_tokens": 1},
        "bad_words",
    ),
    ({"stop_token_ids": list(range(300)), "min_tokens": 1}, "stop_token_ids"),
]
CHOOSABLE = [
    {"allowed_token_ids": [97, 98], "bad_words": ["a"]},
    {"allowed_token_ids": [97], "bad_words": ["ab"]},
    {"allowed_token_ids": [257]},
    {"allowed_token_ids": [257], "min_tokens": 1, "ignore_eos": True},
    {"allowed_token_ids": [97], "stop_token_ids": [97]},
    {"stop_token_ids": list(range(299)), "min_tokens": 1, "ignore_eos": True},
]


def check_choice(members: dict[str, Any], max_tokens: int = 4) -> None:
    stop = stop_rules(chat(**members), max_tokens=max_tokens, vocab_size=VOCAB_SIZE)
    check_choosable(sample(**members), stop, vocab_size=VOCAB_SIZE, eos_ids=(257,))


@pytest.mark.parametrize(("members", "param"), UNCHOOSABLE)
def test_a_request_that_forbids_every_token_is_refused(members: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        check_choice(members)
    assert caught.value.param == param


@pytest.mark.parametrize("members", CHOOSABLE)
def test_one_token_left_is_enough(members: dict[str, Any]) -> None:
    check_choice(members)


def test_nothing_needs_to_be_left_where_nothing_is_generated() -> None:
    check_choice({"allowed_token_ids": [97], "bad_words": ["a"]}, max_tokens=0)
