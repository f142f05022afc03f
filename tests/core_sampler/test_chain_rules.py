"""What each rule does to a greedy row, and to its history."""

import numpy as np
import pytest

from tidegate.core.backend import StepLogits
from tidegate.core.chooser import ChooseRow
from tidegate.core.sampler.bad_words import BadWords
from tidegate.core.sampler.chain import SamplerChain
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules

EOS = (0,)
FALLING = [5.0, 4.5, 4.0, 3.5, 3.0, 2.5]
"""Token 0 is the most likely, and the end token; then 1, 2, 3, ..."""


def play(
    params: SamplingParams, num_tokens: int, stop: StopRules | None = None, prompt: tuple[int, ...] = ()
) -> list[int]:
    """Returns `num_tokens` choices from the same logits."""
    chain = SamplerChain(len(FALLING), EOS)
    stop = stop or StopRules(max_tokens=99)
    chain.open(1, InferenceRequest("r", np.array(prompt, "<u4").tobytes(), params, stop), 0)
    logits = StepLogits([(0, 0)], np.array([FALLING], np.float32))
    return [chain.choose([ChooseRow(1, 0, i)], logits)[0].token_ids[0] for i in range(num_tokens)]


def greedy(**changes: object) -> SamplingParams:
    return SamplingParams(temperature=0.0, **changes)  # type: ignore[arg-type]


CASES = {
    "nothing": (greedy(), None, (), [0, 0, 0]),
    "presence counts once": (greedy(presence_penalty=0.6), None, (), [0, 1, 0, 0]),
    "presence ignores the prompt": (greedy(presence_penalty=2.0), None, (0,), [0, 1]),
    "frequency counts each time": (greedy(frequency_penalty=0.6), None, (), [0, 1, 0, 2, 1, 0]),
    "negative frequency rewards": (greedy(frequency_penalty=-2.0, logit_bias=((1, 1.0),)), None, (), [1, 1, 1]),
    "repetition counts the prompt": (greedy(repetition_penalty=2.0), None, (0, 0, 1), [2, 3, 4, 0]),
    "repetition below one rewards": (greedy(repetition_penalty=0.5), None, (2,), [2, 2]),
    "a bad word of one token": (greedy(bad_words=((0,), (1,))), None, (), [2, 2]),
    "a bad word of two tokens": (greedy(bad_words=((0, 0),)), None, (), [0, 1, 0, 1]),
    "a bad word begun in the prompt": (greedy(bad_words=((4, 5, 0),)), None, (4, 5), [1, 0]),
    "a bad word half begun in the prompt": (greedy(bad_words=((5, 0, 0),)), None, (5,), [0, 1, 0]),
    "a bad word longer than the past": (greedy(bad_words=((5, 5, 5, 0),)), None, (5, 5), [0]),
    "min_tokens holds the end token back": (greedy(), StopRules(99, min_tokens=2), (), [1, 1, 0]),
    "min_tokens holds stop tokens back": (greedy(), StopRules(99, min_tokens=1, token_ids=(1, 2)), (), [3, 0]),
    "ignore_eos makes the end token common": (greedy(), StopRules(99, min_tokens=2, ignore_eos=True), (), [0, 0]),
    "bias cannot lift a held token": (greedy(logit_bias=((0, 100.0),)), StopRules(99, min_tokens=1), (), [1, 0]),
    "allowed tokens only": (greedy(allowed_token_ids=(4, 3, 3)), None, (), [3, 3]),
    "allowed but penalised": (greedy(allowed_token_ids=(4, 3), presence_penalty=2.0), None, (), [3, 4, 3]),
    "bias twice for one token adds up": (greedy(logit_bias=((2, 0.6), (2, 0.6))), None, (), [2]),
}


@pytest.mark.parametrize("name", CASES)
def test_rule(name: str) -> None:
    params, stop, prompt, expected = CASES[name]
    assert play(params, len(expected), stop, prompt) == expected


def test_tokens_taken_back_are_forgotten() -> None:
    chain = SamplerChain(len(FALLING), EOS)
    params = greedy(frequency_penalty=0.6, repetition_penalty=1.05, bad_words=((1, 0),))
    chain.open(1, InferenceRequest("r", b"", params, StopRules(99)), 0)
    logits = StepLogits([(0, 0)], np.array([FALLING], np.float32))

    def go_on(first: int, last: int) -> list[int]:
        return [chain.choose([ChooseRow(1, 0, i)], logits)[0].token_ids[0] for i in range(first, last)]

    tokens = go_on(0, 8)
    assert len(set(tokens)) > 2
    assert go_on(3, 8) == tokens[3:]
    assert go_on(0, 8) == tokens


def test_a_long_history_keeps_exact_counts() -> None:
    chain = SamplerChain(200, ())
    chain.open(1, InferenceRequest("r", b"", greedy(frequency_penalty=1.0), StopRules(999)), 0)
    logits = StepLogits([(0, 0)], np.zeros((1, 200), np.float32))
    tokens = [chain.choose([ChooseRow(1, 0, i)], logits)[0].token_ids[0] for i in range(600)]
    assert tokens == [*range(200)] * 3


def test_bad_words_know_how_much_past_they_need() -> None:
    words = BadWords([(1,), (2, 3, 4), (3, 4), ()])
    assert words.max_prefix == 2
    assert words.forbidden([]) == [1]
    assert words.forbidden([2, 3]) == [1, 4, 4]
    assert words.forbidden([3]) == [1, 4]
    assert BadWords([]).forbidden([1]) == []
