"""vLLM's outputs as they come, read into pieces."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.engines.remote.event_lines import UnreadableAnswer
from tidegate.engines.vllm.output_reading import VllmOutputReader
from tidegate.engines.vllm.sampling_fields import FAILED
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules

PROMPT = b"\x05\0\0\0\x06\0\0\0"


def reader(choice: int = 0, **fields: Any) -> VllmOutputReader:
    request = InferenceRequest("r", PROMPT, SamplingParams(), StopRules(max_tokens=8, token_ids=(9,)), **fields)
    return VllmOutputReader(request, choice, (257,))


def scores(**logprobs: float) -> dict[int, Any]:
    return {int(name[1:]): SimpleNamespace(logprob=value, rank=1) for name, value in logprobs.items()}


def output(token_ids: list[int], finish: str | None = None, **fields: Any) -> Any:
    completion = SimpleNamespace(
        index=fields.pop("index", 0),
        token_ids=token_ids,
        finish_reason=finish,
        stop_reason=None,
        logprobs=fields.pop("logprobs", None),
    )
    members = {"prompt_logprobs": None, "num_cached_tokens": 0, "metrics": None, "outputs": [completion]}
    return SimpleNamespace(**{**members, **fields})


def test_tokens_come_as_they_are_joined_or_not() -> None:
    one = reader()
    assert [one.read(output([1])).token_ids, one.read(output([2, 3])).token_ids] == [[1], [2, 3]]
    last = one.read(output([9], "stop"))
    assert (last.token_ids, last.finish, last.stop_token) == ([9], EngineFinish.STOP_TOKEN, 9)


def test_an_end_without_tokens_is_known_by_the_last_one_that_came() -> None:
    one = reader()
    one.read(output([257]))
    assert one.read(output([], "stop")).finish is EngineFinish.EOS


def test_cached_tokens_and_the_wait_are_told_once() -> None:
    one = reader()
    metrics = SimpleNamespace(queued_ts=10.0, scheduled_ts=10.5)
    first = one.read(output([1], num_cached_tokens=1, metrics=metrics))
    second = one.read(output([2], num_cached_tokens=1, metrics=metrics))
    assert (first.num_cached_tokens, first.queue_s) == (1, 0.5)
    assert (second.num_cached_tokens, second.queue_s) == (None, 0.0)


@pytest.mark.parametrize(
    ("queued", "scheduled"), [(0.0, 10.0), (10.0, 0.0), (10.5, 10.0), (None, None)], ids=["a", "b", "c", "d"]
)
def test_a_wait_that_is_not_known_is_none(queued: float | None, scheduled: float | None) -> None:
    metrics = SimpleNamespace(queued_ts=queued, scheduled_ts=scheduled)
    assert reader().read(output([1], metrics=metrics)).queue_s == 0.0


def test_a_failure_has_its_words_and_an_abort_with_tokens_keeps_its_scores() -> None:
    assert reader().read(output([1], "error")).error == FAILED
    scored = reader(num_prompt_logprobs=0).read(output([1], "abort", prompt_logprobs=[None, scores(t6=-2.0)]))
    assert scored.prompt_logprobs == [None, TokenLogprob(6, -2.0)]


def test_the_last_of_several_tokens_says_why_it_stopped() -> None:
    assert reader().read(output([4, 9], "stop")).stop_token == 9


def test_alternatives_are_the_best_of_one_more_than_asked_for() -> None:
    piece = reader(num_logprobs=2).read(output([4], logprobs=[scores(t4=-3.0, t1=-0.5, t2=-0.7, t3=-2.0)]))
    assert piece.logprobs == [TokenLogprob(4, -3.0, ((1, -0.5), (2, -0.7)))]


def test_with_no_alternatives_the_list_is_empty() -> None:
    assert reader(num_logprobs=0).read(output([4], logprobs=[scores(t4=-3.0)])).logprobs == [TokenLogprob(4, -3.0)]


@pytest.mark.parametrize("value", [-math.inf, math.nan, -1e6])
def test_every_log_probability_is_finite(value: float) -> None:
    piece = reader(num_logprobs=1).read(output([4], logprobs=[scores(t4=value, t1=-0.5)]))
    assert piece.logprobs == [TokenLogprob(4, -9999.0, ((1, -0.5),))]


def test_the_prompts_scores_come_with_the_first_output_alone() -> None:
    one = reader(num_prompt_logprobs=1)
    first = one.read(output([1], prompt_logprobs=[None, scores(t6=-2.0, t7=-0.1)]))
    assert first.prompt_logprobs == [None, TokenLogprob(6, -2.0, ((7, -0.1),))]
    assert one.read(output([2], prompt_logprobs=[])).prompt_logprobs is None


def test_another_choice_brings_no_scores() -> None:
    assert reader(1, num_prompt_logprobs=1, num_choices=2).read(output([1])).prompt_logprobs is None


def test_an_abort_before_any_output_has_no_scores_to_miss() -> None:
    assert reader(num_prompt_logprobs=1).read(output([], "abort")).finish is EngineFinish.ABORTED


UNREADABLE = {
    "another choice": (reader(), output([1], index=1)),
    "two choices": (
        reader(),
        SimpleNamespace(outputs=[SimpleNamespace(index=0, token_ids=[1], finish_reason=None, logprobs=None)] * 2),
    ),
    "no choice": (reader(), SimpleNamespace(outputs=[])),
    "no log-probabilities": (reader(num_logprobs=1), output([1])),
    "fewer of them": (reader(num_logprobs=1), output([1, 2], logprobs=[scores(t1=-1.0)])),
    "of another token": (reader(num_logprobs=1), output([1], logprobs=[scores(t2=-1.0)])),
    "no scores": (reader(num_prompt_logprobs=1), output([1])),
    "scores of another prompt": (reader(num_prompt_logprobs=1), output([1], prompt_logprobs=[None])),
    "more scores than tokens": (
        reader(num_prompt_logprobs=0),
        output([1], prompt_logprobs=[None, scores(t6=-1.0), scores(t6=-1.0)]),
    ),
    "scores without the prompt's token": (
        reader(num_prompt_logprobs=1),
        output([1], prompt_logprobs=[None, scores(t7=-1.0)]),
    ),
}


@pytest.mark.parametrize("case", UNREADABLE.values(), ids=UNREADABLE)
def test_what_was_not_asked_for_is_not_believed(case: tuple[VllmOutputReader, Any]) -> None:
    one, given = case
    with pytest.raises(UnreadableAnswer):
        one.read(given)
