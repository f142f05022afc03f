"""What vLLM is asked for, and what is refused before it hears of a request."""

from typing import Any

import pytest

from tidegate.engines.vllm.sampling_fields import FAILED, VllmLimits, best, check_fields, read_end, sampling_fields
from tidegate.errors import ContextLengthExceeded, InvalidValue, LimitFact, ServeError, UnsupportedParameter
from tidegate.inference.finish import EngineFinish
from tidegate.inference.grammar_spec import GrammarRule, JsonObjectSpec
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules

LIMITS = VllmLimits(max_logprobs=21, max_model_len=10, vocab_size=300)
GRAMMAR = GrammarRule(JsonObjectSpec())


def make_request(prompt: tuple[int, ...] = (5, 6), stop: StopRules | None = None, **fields: Any) -> InferenceRequest:
    data = b"".join(token_id.to_bytes(4, "little") for token_id in prompt)
    sampling = fields.pop("sampling", SamplingParams())
    return InferenceRequest("r", data, sampling, stop or StopRules(max_tokens=4), **fields)


REFUSED: dict[str, tuple[InferenceRequest, type[ServeError]]] = {
    "no prompt": (make_request(()), InvalidValue),
    "a token beyond the vocabulary": (make_request((5, 300)), InvalidValue),
    "more than the context": (make_request(stop=StopRules(max_tokens=9)), ContextLengthExceeded),
    "a prompt as long as the context, for no token": (make_request((1,) * 10, StopRules(0)), ContextLengthExceeded),
    "a temperature that would be raised": (
        make_request(sampling=SamplingParams(temperature=0.009)),
        UnsupportedParameter,
    ),
    "21 alternatives": (make_request(num_logprobs=21), UnsupportedParameter),
    "22 scores": (make_request(num_prompt_logprobs=22), UnsupportedParameter),
    "bad words": (make_request(sampling=SamplingParams(bad_words=((1,),))), UnsupportedParameter),
    "a constraint that would end": (make_request(stop=StopRules(4, 1), grammar=GRAMMAR), UnsupportedParameter),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_vllm_would_change_or_refuse_is_refused_here(case: tuple[InferenceRequest, type[ServeError]]) -> None:
    request, error = case
    with pytest.raises(error):
        check_fields(request, LIMITS)


TAKEN = {
    "up to the context": make_request(stop=StopRules(max_tokens=8)),
    "20 alternatives": make_request(num_logprobs=20, num_prompt_logprobs=20),
    "21 scores": make_request(num_prompt_logprobs=21),
    "greedy": make_request(sampling=SamplingParams(temperature=0.0)),
    "the least temperature": make_request(sampling=SamplingParams(temperature=0.01)),
    "the vocabulary's last token": make_request((299,)),
}


@pytest.mark.parametrize("request_", TAKEN.values(), ids=TAKEN)
def test_what_vllm_does_exactly_is_taken(request_: InferenceRequest) -> None:
    check_fields(request_, LIMITS)


def test_end_tokens_are_named_after_the_callers_unless_they_are_ignored() -> None:
    request = make_request(stop=StopRules(4, token_ids=(9, 257)))
    assert sampling_fields(request, 0, (257, 258), None)["stop_token_ids"] == [9, 257, 258]
    ignoring = make_request(stop=StopRules(4, token_ids=(9,), ignore_eos=True))
    assert sampling_fields(ignoring, 0, (257, 258), None)["stop_token_ids"] == [9]


@pytest.mark.parametrize("seed", [0, -1, 2**63 - 1, -(2**63)])
def test_seeds_lie_in_the_range_that_vllm_takes(seed: int) -> None:
    request = make_request(sampling=SamplingParams(seed=seed))
    seeds = [sampling_fields(request, choice, (), None)["seed"] for choice in range(8)]
    assert all(isinstance(one, int) and 0 <= one < 2**63 for one in seeds)
    assert len(set(seeds)) == 8


def test_a_request_for_no_token_asks_for_one_and_never_for_more_least_tokens_than_that() -> None:
    fields = sampling_fields(make_request(stop=StopRules(0)), 0, (), None)
    assert (fields["max_tokens"], fields["min_tokens"]) == (1, 0)
    fields = sampling_fields(make_request(stop=StopRules(2, min_tokens=5)), 0, (), None)
    assert (fields["max_tokens"], fields["min_tokens"]) == (2, 2)


ENDS: dict[str, tuple[str, int | None, InferenceRequest, EngineFinish, int | None]] = {
    "end token": ("stop", 257, make_request(), EngineFinish.EOS, None),
    "stop token": ("stop", 9, make_request(stop=StopRules(4, token_ids=(9,))), EngineFinish.STOP_TOKEN, 9),
    "grammar": ("stop", 7, make_request(grammar=GRAMMAR), EngineFinish.GRAMMAR_COMPLETE, None),
    "grammar and end token": ("stop", 257, make_request(grammar=GRAMMAR), EngineFinish.EOS, None),
    "length": ("length", 7, make_request(), EngineFinish.LENGTH, None),
    "abort": ("abort", None, make_request(), EngineFinish.ABORTED, None),
    "error": ("error", None, make_request(), EngineFinish.FAILED, None),
    "a new word": ("repetition", 7, make_request(), EngineFinish.FAILED, None),
}


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS)
def test_vllms_words_for_an_end_are_read(
    case: tuple[str, int | None, InferenceRequest, EngineFinish, int | None],
) -> None:
    reason, last, request, finish, stop_token = case
    end = read_end(request, reason, last, (257,))
    assert (end.finish, end.stop_token) == (finish, stop_token)
    assert (end.error is not None) == (finish is EngineFinish.FAILED)


def test_numbers_that_mean_off_go_as_they_are() -> None:
    sampling = SamplingParams(top_k=0, min_p=0.0, allowed_token_ids=())
    fields = sampling_fields(make_request(sampling=sampling), 0, (), None)
    assert (fields["top_k"], fields["min_p"], fields["allowed_token_ids"]) == (0, 0.0, [])
    assert "logit_bias" not in fields
    assert "allowed_token_ids" not in sampling_fields(make_request(), 0, (), None)


def test_a_context_that_is_too_short_is_told_with_both_numbers() -> None:
    with pytest.raises(ContextLengthExceeded) as raised:
        check_fields(make_request(stop=StopRules(max_tokens=9)), LIMITS)
    assert raised.value.limit == LimitFact("context_length", 10, 11)


def test_a_failure_and_a_word_that_is_not_known_are_told_apart() -> None:
    failed, unknown = (read_end(make_request(), reason, None, ()).error for reason in ("error", "repetition"))
    assert failed == FAILED
    assert unknown not in (None, FAILED)


def test_the_grammar_goes_as_vllm_takes_it() -> None:
    fields = sampling_fields(make_request(grammar=GRAMMAR), 0, (), 'start: "a"')
    assert fields["structured_outputs"] == {"grammar": 'start: "a"'}
    assert "structured_outputs" not in sampling_fields(make_request(), 0, (), None)


def test_the_likeliest_come_first_each_once() -> None:
    assert best([(5, -2.0), (9, -0.5), (7, -1.0), (5, -2.0)], 2) == ((9, -0.5), (7, -1.0))
    assert best([(5, -2.0)], 0) == ()
