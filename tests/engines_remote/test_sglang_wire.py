"""SGLang's wire: what is sent field by field, what is read, what is refused before anything is sent."""

import json
from typing import Any

import msgspec
import pytest

from tidegate.engines.remote.event_lines import UnreadableAnswer
from tidegate.engines.sglang.sglang_wire import SglangAbilities, SglangDialect
from tidegate.errors import UnsupportedParameter
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules

PROMPT = b"\x05\0\0\0\x06\0\0\0"
ABLE = SglangAbilities(eos_token_ids=(257,), is_repeatable=True, priority_sign=-1)
INCREMENTAL = SglangAbilities(eos_token_ids=(257,), is_incremental=True)


def make_request(
    *, sampling: SamplingParams | None = None, stop: StopRules | None = None, **fields: Any
) -> InferenceRequest:
    rules = stop or StopRules(max_tokens=9, token_ids=(9,))
    return InferenceRequest("r", PROMPT, sampling or SamplingParams(), rules, **fields)


def sent(request: InferenceRequest, abilities: SglangAbilities = ABLE, choice: int = 0) -> Any:
    return json.loads(SglangDialect(abilities).order(request, choice, "r-0").body)


def test_every_field_is_sent_and_none_is_left_to_the_servers_defaults() -> None:
    sampling = SamplingParams(
        temperature=0.7,
        top_p=0.9,
        top_k=0,
        min_p=0.1,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        repetition_penalty=1.1,
        seed=-1,
        logit_bias=((7, -100.0),),
    )
    rules = StopRules(max_tokens=50, min_tokens=2, token_ids=(9, 10), ignore_eos=True)
    body = sent(make_request(sampling=sampling, stop=rules, priority=-5, cache_salt=b"\x01\xff"))
    assert 0 <= body["sampling_params"].pop("sampling_seed") < 2**31
    assert body == {
        "rid": "r-0",
        "input_ids": [5, 6],
        "stream": True,
        "extra_key": "01ff",
        "priority": 5,
        "sampling_params": {
            "n": 1,
            "temperature": 0.7,
            "top_p": 0.9,
            "top_k": -1,
            "min_p": 0.1,
            "presence_penalty": 0.5,
            "frequency_penalty": -0.5,
            "repetition_penalty": 1.1,
            "max_new_tokens": 50,
            "min_new_tokens": 2,
            "stop_token_ids": [9, 10],
            "ignore_eos": True,
            "skip_special_tokens": False,
            "no_stop_trim": True,
            "logit_bias": {"7": -100.0},
        },
    }


def test_a_server_without_repeatable_sampling_or_priorities_is_sent_neither() -> None:
    body = sent(make_request(priority=3), SglangAbilities((257,)))
    assert "sampling_seed" not in body["sampling_params"]
    assert "priority" not in body


ASKED: dict[str, tuple[InferenceRequest, int, dict[str, Any]]] = {
    "chosen tokens": (make_request(num_logprobs=0), 0, {"top_logprobs_num": 0, "logprob_start_len": -1}),
    "alternatives": (make_request(num_logprobs=3), 0, {"top_logprobs_num": 3, "logprob_start_len": -1}),
    "scores": (make_request(num_prompt_logprobs=2), 0, {"top_logprobs_num": 2, "logprob_start_len": 0}),
    "both": (make_request(num_logprobs=3, num_prompt_logprobs=1), 0, {"top_logprobs_num": 3, "logprob_start_len": 0}),
    "another choice": (
        make_request(num_logprobs=1, num_prompt_logprobs=5, num_choices=2),
        1,
        {"top_logprobs_num": 1, "logprob_start_len": -1},
    ),
}


@pytest.mark.parametrize("case", ASKED.values(), ids=ASKED)
def test_log_probabilities_are_asked_for_as_far_as_they_are_wanted(case: tuple[InferenceRequest, int, Any]) -> None:
    request, choice, members = case
    body = sent(request, choice=choice)
    assert {name: body[name] for name in members} == members
    assert body["return_logprob"]


REFUSED: dict[str, tuple[InferenceRequest, str]] = {
    "bad words": (make_request(sampling=SamplingParams(bad_words=((1,),))), "bad_words"),
    "allowed tokens": (make_request(sampling=SamplingParams(allowed_token_ids=(1,))), "allowed_token_ids"),
    **{
        f"log-probabilities with {name}": (make_request(sampling=sampling, num_logprobs=0), "logprobs")
        for name, sampling in {
            "temperature": SamplingParams(temperature=0.5),
            "bias": SamplingParams(logit_bias=((1, 2.0),)),
            "presence": SamplingParams(presence_penalty=0.1),
            "frequency": SamplingParams(frequency_penalty=0.1),
            "repetition": SamplingParams(repetition_penalty=1.1),
        }.items()
    },
    "log-probabilities with least tokens": (make_request(stop=StopRules(4, min_tokens=1), num_logprobs=0), "logprobs"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_sglang_would_not_do_exactly_is_refused_by_name(case: tuple[InferenceRequest, str]) -> None:
    request, param = case
    with pytest.raises(UnsupportedParameter) as raised:
        SglangDialect(ABLE).check(request)
    assert raised.value.param == param


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_log_probabilities_of_unchanged_logits_are_served(temperature: float) -> None:
    SglangDialect(ABLE).check(make_request(sampling=SamplingParams(temperature=temperature), num_logprobs=2))


def read(request: InferenceRequest, abilities: SglangAbilities, *events: Any) -> list[Any]:
    reader = SglangDialect(abilities).reader(request, 0)
    return [reader.feed(event if isinstance(event, bytes) else msgspec.json.encode(event)) for event in events]


def event(output_ids: list[int], finish: Any = None, **meta: Any) -> Any:
    return {"text": "?", "output_ids": output_ids, "meta_info": {"finish_reason": finish, "id": "r-0", **meta}}


STOP = {"type": "stop", "matched": 257}


def test_a_cumulative_output_is_told_piece_by_piece() -> None:
    pieces = read(make_request(), ABLE, event([1]), event([1, 2, 3]), event([1, 2, 3]), event([1, 2, 3, 257], STOP))
    assert [piece.token_ids for piece in pieces] == [[1], [2, 3], [], [257]]
    assert (pieces[-1].finish, pieces[-1].is_last) == (EngineFinish.EOS, True)


def test_an_incremental_output_is_told_as_it_comes() -> None:
    last = event([257], STOP, completion_tokens=4)
    pieces = read(make_request(), INCREMENTAL, event([1]), event([2, 3]), last)
    assert [piece.token_ids for piece in pieces] == [[1], [2, 3], [257]]


def test_tokens_wait_for_log_probabilities_that_come_an_event_later() -> None:
    request = make_request(num_logprobs=0)
    first = event([1, 2], output_token_logprobs=[[-0.1, 1, None]])
    last = event([1, 2, 9], STOP, output_token_logprobs=[[-0.1, 1, None], [-0.2, 2, None], [-0.3, 9, None]])
    pieces = read(request, ABLE, first, last)
    assert [piece.token_ids for piece in pieces] == [[1], [2, 9]]
    assert pieces[1].logprobs == [TokenLogprob(2, -0.2), TokenLogprob(9, -0.3)]
    assert (pieces[1].finish, pieces[1].stop_token) == (EngineFinish.STOP_TOKEN, 9)


def test_alternatives_and_scores_are_read_once_best_first() -> None:
    request = make_request(num_logprobs=2, num_prompt_logprobs=1)
    scores = {
        "input_token_logprobs": [[None, 5, None], [-3.0, 6, None]],
        "input_top_logprobs": [None, [[-0.5, 7, None], [-0.6, 8, None]]],
    }
    tops = {"output_token_logprobs": [[-0.1, 1, None]], "output_top_logprobs": [[[-0.9, 2, None], [-0.1, 1, None]]]}
    pieces = read(request, ABLE, event([1], **tops, **scores), event([1], {"type": "length"}, **tops, **scores))
    assert pieces[0].prompt_logprobs == [None, TokenLogprob(6, -3.0, ((7, -0.5),))]
    assert pieces[0].logprobs == [TokenLogprob(1, -0.1, ((1, -0.1), (2, -0.9)))]
    assert pieces[1].prompt_logprobs is None
    assert pieces[1].finish is EngineFinish.LENGTH


ENDS: dict[str, tuple[Any, EngineFinish]] = {
    "budget": ({"type": "length", "length": 1}, EngineFinish.LENGTH),
    "aborted": ({"type": "abort", "message": "Aborted"}, EngineFinish.ABORTED),
    "refused": ({"type": "abort", "message": "secret", "status_code": 400}, EngineFinish.FAILED),
    "overloaded": ({"type": "abort", "message": "secret", "status_code": 503}, EngineFinish.FAILED),
    "unheard of": ({"type": "other"}, EngineFinish.FAILED),
}


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS)
def test_every_end_has_its_meaning_and_no_words_of_the_engine(case: tuple[Any, EngineFinish]) -> None:
    finish, expected = case
    (piece,) = read(make_request(), ABLE, event([1], finish))
    assert piece.finish is expected
    assert "secret" not in (piece.error or "")


def test_cached_tokens_are_told_with_the_first_event() -> None:
    pieces = read(make_request(), ABLE, event([1], cached_tokens=64), event([1, 2], cached_tokens=64))
    assert [piece.num_cached_tokens for piece in pieces] == [64, None]


UNREADABLE: dict[str, tuple[InferenceRequest, Any]] = {
    "no JSON": (make_request(), b"{"),
    "no meta_info": (make_request(), {"output_ids": [1]}),
    "another count": (make_request(), event([1], STOP, completion_tokens=2)),
    "no log-probabilities": (make_request(num_logprobs=0), event([1], STOP, completion_tokens=1)),
    "log-probabilities of other tokens": (
        make_request(num_logprobs=0),
        event([1], output_token_logprobs=[[-0.1, 2, None]]),
    ),
    "no alternatives": (make_request(num_logprobs=2), event([1], output_token_logprobs=[[-0.1, 1, None]])),
    "no scores": (make_request(num_prompt_logprobs=0), event([1], STOP)),
    "scores of another prompt": (
        make_request(num_prompt_logprobs=0),
        event([1], input_token_logprobs=[[None, 5, None], [-1.0, 7, None]]),
    ),
}


@pytest.mark.parametrize("case", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_said_and_never_guessed(case: tuple[InferenceRequest, Any]) -> None:
    request, one = case
    with pytest.raises(UnreadableAnswer):
        read(request, ABLE, one)


def test_an_output_that_becomes_shorter_is_not_believed() -> None:
    with pytest.raises(UnreadableAnswer, match="shorter"):
        read(make_request(), ABLE, event([1, 2]), event([1]))
