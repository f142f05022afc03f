"""vLLM's wire: what is sent field by field, what is read, what is refused before anything is sent."""

import json
from typing import Any

import msgspec
import pytest

from tidegate.engines.remote.event_lines import UnreadableAnswer
from tidegate.engines.remote.remote_grammar import GrammarWriter
from tidegate.engines.vllm.sampling_fields import FAILED, VllmLimits
from tidegate.engines.vllm_http.vllm_wire import VllmAbilities, VllmDialect
from tidegate.errors import UnsupportedParameter
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import GrammarRule, JsonObjectSpec
from tidegate.inference.output import TokenLogprob
from tidegate.inference.pooling import PoolingTask
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.inference.script import Script

PROMPT = b"\x05\0\0\0\x06\0\0\0"
GRAMMARS = GrammarWriter(frozenset({256}), lambda token_id: bytes([token_id]))
ABLE = VllmAbilities("m", eos_token_ids=(257,), limits=VllmLimits(21), takes_priority=True, grammars=GRAMMARS)


def make_request(
    *, sampling: SamplingParams | None = None, stop: StopRules | None = None, **fields: Any
) -> InferenceRequest:
    rules = stop or StopRules(max_tokens=4, token_ids=(9,))
    return InferenceRequest("r", PROMPT, sampling or SamplingParams(), rules, **fields)


def sent(request: InferenceRequest, choice: int = 0, abilities: VllmAbilities = ABLE) -> Any:
    return json.loads(VllmDialect(abilities).order(request, choice, "r-0").body)


def test_every_field_is_sent_and_none_is_left_to_the_servers_defaults() -> None:
    sampling = SamplingParams(
        temperature=0.7,
        top_p=0.9,
        top_k=40,
        min_p=0.1,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        repetition_penalty=1.1,
        seed=-1,
        logit_bias=((7, -100.0), (8, 1.5)),
        allowed_token_ids=(7, 8, 9),
    )
    rules = StopRules(max_tokens=50, min_tokens=2, token_ids=(9, 10), ignore_eos=True)
    body = sent(make_request(sampling=sampling, stop=rules, num_logprobs=3, priority=-5, cache_salt=b"\x01\xff"))
    seed = body["sampling_params"].pop("seed")
    assert 0 <= seed < 2**63
    assert body == {
        "request_id": "r-0",
        "model": "m",
        "token_ids": [5, 6],
        "stream": True,
        "stream_options": {"include_usage": True},
        "cache_salt": "01ff",
        "priority": -5,
        "sampling_params": {
            "n": 1,
            "temperature": 0.7,
            "top_p": 0.9,
            "top_k": 40,
            "min_p": 0.1,
            "presence_penalty": 0.5,
            "frequency_penalty": -0.5,
            "repetition_penalty": 1.1,
            "max_tokens": 50,
            "min_tokens": 2,
            "stop_token_ids": [9, 10],
            "ignore_eos": True,
            "detokenize": False,
            "logit_bias": {"7": -100.0, "8": 1.5},
            "allowed_token_ids": [7, 8, 9],
            "logprobs": 4,
        },
    }


def test_choices_have_seeds_of_their_own_and_the_same_ones_each_time() -> None:
    seeds = [
        sent(make_request(sampling=SamplingParams(seed=seed)), choice)["sampling_params"]["seed"]
        for seed in (1, 2, -1, 2**63 - 1, -(2**63))
        for choice in (0, 1)
    ]
    assert len(set(seeds)) == len(seeds)
    again = sent(make_request(sampling=SamplingParams(seed=1)), 1)["sampling_params"]["seed"]
    assert again == seeds[1]


def test_a_prompts_scores_are_asked_for_once_and_without_a_stream() -> None:
    request = make_request(num_prompt_logprobs=2, num_choices=2, stop=StopRules(max_tokens=0))
    first, second = sent(request, 0), sent(request, 1)
    assert (first["stream"], first["sampling_params"]["prompt_logprobs"]) == (False, 2)
    assert first["sampling_params"]["max_tokens"] == 1
    assert second["stream"]
    assert "prompt_logprobs" not in second["sampling_params"]
    assert not VllmDialect(ABLE).order(request, 0, "r-0").is_stream


def test_a_priority_is_sent_only_to_servers_that_keep_it() -> None:
    unable = VllmAbilities("m", (257,))
    assert "priority" not in sent(make_request(priority=3), abilities=unable)


REFUSED: dict[str, tuple[InferenceRequest, str]] = {
    "pooling": (make_request(pooling=PoolingTask.EMBED), "model"),
    "script": (make_request(script=Script(())), "x_script"),
    "bad words": (make_request(sampling=SamplingParams(bad_words=((1, 2),))), "bad_words"),
    "tiny temperature": (make_request(sampling=SamplingParams(temperature=0.001)), "temperature"),
    "many alternatives": (make_request(num_logprobs=21), "top_logprobs"),
    "many scores": (make_request(num_prompt_logprobs=22), "prompt_logprobs"),
    "grammar and no end": (
        make_request(stop=StopRules(4, ignore_eos=True), grammar=GrammarRule(JsonObjectSpec())),
        "ignore_eos",
    ),
    "grammar and least tokens": (
        make_request(stop=StopRules(4, min_tokens=2), grammar=GrammarRule(JsonObjectSpec())),
        "min_tokens",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_vllm_would_not_do_exactly_is_refused_by_name(case: tuple[InferenceRequest, str]) -> None:
    request, param = case
    with pytest.raises(UnsupportedParameter) as raised:
        VllmDialect(ABLE).check(request)
    assert raised.value.param == param


def test_a_grammar_is_refused_where_the_backend_is_another() -> None:
    with pytest.raises(UnsupportedParameter, match="does not enforce grammars"):
        VllmDialect(VllmAbilities("m", (257,))).check(make_request(grammar=GrammarRule(JsonObjectSpec())))


def read(request: InferenceRequest, *events: Any) -> list[Any]:
    reader = VllmDialect(ABLE).reader(request, 0)
    return [reader.feed(event if isinstance(event, bytes) else msgspec.json.encode(event)) for event in events]


def choice(token_ids: list[int], finish: str | None = None, logprobs: Any = None) -> Any:
    return {"choices": [{"index": 0, "token_ids": token_ids, "finish_reason": finish, "logprobs": logprobs}]}


ENDS: dict[str, tuple[list[int], str, EngineFinish, int | None]] = {
    "end token": ([1, 257], "stop", EngineFinish.EOS, None),
    "stop token": ([1, 9], "stop", EngineFinish.STOP_TOKEN, 9),
    "another end token of the engine": ([1, 300], "stop", EngineFinish.EOS, None),
    "budget": ([1], "length", EngineFinish.LENGTH, None),
    "given up": ([], "abort", EngineFinish.ABORTED, None),
    "failed": ([], "error", EngineFinish.FAILED, None),
    "unheard of": ([1], "repetition", EngineFinish.FAILED, None),
}


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS)
def test_every_end_has_its_meaning(case: tuple[list[int], str, EngineFinish, int | None]) -> None:
    token_ids, word, finish, stop_token = case
    (piece,) = read(make_request(), choice(token_ids, word))
    assert (piece.token_ids, piece.finish, piece.stop_token) == (token_ids, finish, stop_token)
    assert (piece.error is not None) == (finish is EngineFinish.FAILED)


def test_an_error_in_the_stream_fails_the_choice_and_is_the_last() -> None:
    (piece,) = read(make_request(), {"error": {"message": "secret of another caller", "code": 500}})
    assert (piece.finish, piece.is_last, piece.error) == (EngineFinish.FAILED, True, FAILED)


def test_an_answer_that_is_no_stream_has_its_cached_tokens_with_it() -> None:
    whole = choice([1], "length") | {"usage": {"prompt_tokens_details": {"cached_tokens": 16}}}
    (piece,) = read(make_request(), whole)
    assert (piece.num_cached_tokens, piece.finish) == (16, EngineFinish.LENGTH)


def test_a_finished_grammar_without_an_end_token_is_complete() -> None:
    (piece,) = read(make_request(grammar=GrammarRule(JsonObjectSpec())), choice([1], "stop"))
    assert piece.finish is EngineFinish.GRAMMAR_COMPLETE


def test_cached_tokens_come_with_the_usage_behind_the_end() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 2, "prompt_tokens_details": {"cached_tokens": 16}}}
    pieces = read(make_request(), choice([1], "length"), usage)
    assert [piece.num_cached_tokens for piece in pieces] == [None, 16]


SHAPES = {
    "ids": lambda token_id: {"token_id": token_id, "rank": 1},
    "ids as text": lambda token_id: {"token": f"token_id:{token_id}", "bytes": None},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_alternatives_are_the_best_ones_wherever_the_chosen_token_stands(shape: str) -> None:
    name = SHAPES[shape]
    # Two are asked for, so three are requested: vLLM puts the chosen token first and cuts the list to three.
    cut = [name(1) | {"logprob": -7.0}, name(2) | {"logprob": -0.1}, name(3) | {"logprob": -0.5}]
    among = [name(2) | {"logprob": -0.1}, name(3) | {"logprob": -0.5}, name(4) | {"logprob": -0.9}]
    logprobs = {
        "content": [
            name(1) | {"logprob": -7.0, "top_logprobs": cut},
            name(2) | {"logprob": -0.1, "top_logprobs": among},
        ]
    }
    (piece,) = read(make_request(num_logprobs=2), choice([1, 2], None, logprobs))
    best = ((2, -0.1), (3, -0.5))
    assert piece.logprobs == [TokenLogprob(1, -7.0, best), TokenLogprob(2, -0.1, best)]


def test_scores_of_the_prompt_name_its_own_tokens() -> None:
    scores = [None, {"6": {"logprob": -3.0, "rank": 5}, "7": {"logprob": -0.2, "rank": 1}}]
    body = choice([1], "length") | {"prompt_logprobs": scores}
    (piece,) = read(make_request(num_prompt_logprobs=1), body)
    assert piece.prompt_logprobs == [None, TokenLogprob(6, -3.0, ((7, -0.2),))]


UNREADABLE: dict[str, tuple[InferenceRequest, Any]] = {
    "no JSON": (make_request(), b"{"),
    "a list": (make_request(), b"[]"),
    "tokens as text": (make_request(), choice(["a"])),  # type: ignore[list-item]
    "a token below 0": (make_request(), choice([-1])),
    "another choice": (make_request(), {"choices": [{"index": 1, "token_ids": [1]}]}),
    "two choices": (make_request(), {"choices": [{"token_ids": [1]}, {"token_ids": [2]}]}),
    "missing log-probabilities": (make_request(num_logprobs=0), choice([1])),
    "log-probabilities of other tokens": (
        make_request(num_logprobs=0),
        choice([1], None, {"content": [{"token_id": 2, "logprob": -1.0}]}),
    ),
    "log-probabilities without ids": (
        make_request(num_logprobs=0),
        choice([1], None, {"content": [{"token": "a", "logprob": -1.0}]}),
    ),
    "log-probabilities with digits of another script": (
        make_request(num_logprobs=0),
        choice([3], None, {"content": [{"token": "token_id:٣", "logprob": -1.0}]}),
    ),
    "no scores": (make_request(num_prompt_logprobs=0), choice([1], "length")),
    "scores of another prompt": (
        make_request(num_prompt_logprobs=0),
        choice([1], "length") | {"prompt_logprobs": [None, {"9": {"logprob": -1.0}}]},
    ),
}


@pytest.mark.parametrize("case", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_said_and_never_guessed(case: tuple[InferenceRequest, Any]) -> None:
    request, event = case
    with pytest.raises(UnreadableAnswer):
        read(request, event)


def test_an_abort_names_the_request_as_vllm_does() -> None:
    order = VllmDialect(ABLE).abort_order("r-0")
    assert order is not None
    assert (order.path, json.loads(order.body)) == (
        "/inference/v1/abort_requests",
        {"request_ids": ["generate-tokens-r-0"]},
    )
