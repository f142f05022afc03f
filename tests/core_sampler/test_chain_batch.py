"""Batches: mixed rows equal rows alone, the logits stay as they were, and one bad row harms no other."""

import random

import numpy as np
import pytest

from tidegate.core.backend import Float32Array, StepLogits
from tidegate.core.chooser import ChooseRow, Chosen
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.sampler.logprobs import LOWEST
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenLogprob
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules

VOCAB = 900
EOS = (7,)
PROMPT = np.array([1, 2, 3, 2], "<u4").tobytes()

MIXED = [
    SamplingParams(temperature=0.0),
    SamplingParams(seed=1),
    SamplingParams(temperature=0.0, repetition_penalty=1.3),
    SamplingParams(seed=2, top_p=0.8),
    SamplingParams(temperature=0.0),
    SamplingParams(seed=3, top_k=5, presence_penalty=1.0),
    SamplingParams(seed=4, min_p=0.1, logit_bias=((5, 20.0),)),
    SamplingParams(seed=5, allowed_token_ids=tuple(range(100, 300))),
    SamplingParams(seed=6, temperature=1e-6),
    SamplingParams(seed=7, bad_words=((1,), (2, 9))),
    SamplingParams(temperature=0.0, bad_words=((1,),)),
    SamplingParams(seed=8, frequency_penalty=-2.0, temperature=2.0),
]


def make_request(
    params: SamplingParams, num_logprobs: int | None = None, stop: StopRules | None = None, prompt: bytes = PROMPT
) -> InferenceRequest:
    return InferenceRequest("r", prompt, params, stop or StopRules(max_tokens=50), 1, num_logprobs, num_logprobs)


def logits_of(values: Float32Array) -> StepLogits:
    return StepLogits([(i, 0) for i in range(len(values))], values)


def choose_one(
    params: SamplingParams, values: list[float] | Float32Array, num_generated: int = 0, num_logprobs: int | None = None
) -> Chosen:
    array = np.array([values], np.float32)
    chain = SamplerChain(array.shape[1], EOS)
    chain.open(1, make_request(params, num_logprobs), 0)
    return chain.choose([ChooseRow(1, 0, num_generated)], logits_of(array))[0]


def test_mixed_rows_in_any_order_equal_rows_alone() -> None:
    rng = np.random.default_rng(3)
    together, alone = SamplerChain(VOCAB, EOS), SamplerChain(VOCAB, EOS)
    for key, params in enumerate(MIXED):
        request = make_request(params, key % 3 if key % 2 else None, StopRules(max_tokens=50, min_tokens=key % 4))
        together.open(key, request, key)
        alone.open(key, request, key)
    dice = random.Random(1)
    for position in range(8):
        values = (rng.standard_normal((len(MIXED), VOCAB)) * 2).astype(np.float32)
        before = values.copy()
        rows = [ChooseRow(key, key, position) for key in range(len(MIXED))]
        dice.shuffle(rows)
        batch = together.choose(rows, logits_of(values))
        single = [alone.choose([ChooseRow(r.key, 0, position)], logits_of(values[r.row : r.row + 1]))[0] for r in rows]
        assert batch == single
        assert np.array_equal(values, before)


def test_a_read_only_view_with_rows_left_over_is_enough() -> None:
    values = np.random.default_rng(0).standard_normal((5, VOCAB)).astype(np.float32)
    values.flags.writeable = False
    chain = SamplerChain(VOCAB, EOS)
    for key, params in enumerate(MIXED[:3]):
        chain.open(key, make_request(params), 0)
    chosen = chain.choose([ChooseRow(0, 4, 0), ChooseRow(1, 1, 0), ChooseRow(2, 2, 0)], logits_of(values))
    assert chosen[0].token_ids == [int(values[4].argmax())]
    assert chain.choose([], logits_of(values)) == []


def test_greedy_rows_side_by_side_and_apart_take_the_lowest_id_of_the_best() -> None:
    values = np.zeros((6, 50), np.float32)
    for row in range(6):
        values[row, [row + 3, row + 20]] = 9.0
    chain = SamplerChain(50, EOS)
    for key in range(6):
        chain.open(key, make_request(SamplingParams(temperature=0.0)), 0)
    for picked in ([0, 1, 2, 3, 4, 5], [2, 3, 4], [5, 0, 3], [4]):
        chosen = chain.choose([ChooseRow(row, row, 0) for row in picked], logits_of(values))
        assert [one.token_ids for one in chosen] == [[row + 3] for row in picked]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("num_logprobs", [None, 2])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.nan])
def test_a_row_that_is_not_finite_fails_alone(temperature: float, num_logprobs: int | None, bad: float) -> None:
    values = np.zeros((3, VOCAB), np.float32)
    values[1, 450] = bad
    chain = SamplerChain(VOCAB, EOS)
    for key in range(3):
        chain.open(key, make_request(SamplingParams(temperature=temperature), num_logprobs), 0)
    chosen = chain.choose([ChooseRow(key, key, 0) for key in range(3)], logits_of(values))
    assert [len(one.token_ids) for one in chosen] == [1, 0, 1]
    assert chosen[1].finish is EngineFinish.FAILED
    assert "not finite" in str(chosen[1].error)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_of_nothing_but_minus_infinity_fails(temperature: float) -> None:
    chosen = choose_one(SamplingParams(temperature=temperature), [-np.inf] * 5)
    assert chosen.finish is EngineFinish.FAILED


UNUSABLE = [
    (SamplingParams(temperature=float("nan")), "temperature"),
    (SamplingParams(temperature=-1.0), "temperature"),
    (SamplingParams(temperature=float("inf")), "temperature"),
    (SamplingParams(top_p=0.0), "top_p"),
    (SamplingParams(top_p=float("nan")), "top_p"),
    (SamplingParams(top_k=-1), "top_k"),
    (SamplingParams(min_p=1.5), "min_p"),
    (SamplingParams(presence_penalty=float("inf")), "presence_penalty"),
    (SamplingParams(frequency_penalty=float("nan")), "frequency_penalty"),
    (SamplingParams(repetition_penalty=0.0), "repetition_penalty"),
    (SamplingParams(logit_bias=((VOCAB, 1.0),)), "logit_bias"),
    (SamplingParams(logit_bias=((1, float("nan")),)), "logit_bias"),
    (SamplingParams(allowed_token_ids=(-1,)), "allowed_token_ids"),
    (SamplingParams(allowed_token_ids=()), "allowed_token_ids"),
    (SamplingParams(bad_words=((1, 10**9),)), "bad_words"),
]


@pytest.mark.parametrize(("params", "field"), UNUSABLE, ids=lambda value: value if isinstance(value, str) else "")
def test_unusable_parameters_fail_their_row_and_name_the_field(params: SamplingParams, field: str) -> None:
    chosen = choose_one(params, [0.0] * VOCAB)
    assert chosen.finish is EngineFinish.FAILED
    assert field in str(chosen.error)


def test_prompt_and_stop_ids_outside_the_vocabulary_fail_the_row_too() -> None:
    chain = SamplerChain(10, EOS)
    prompt = np.array([11], "<u4").tobytes()
    chain.open(1, make_request(SamplingParams(repetition_penalty=1.1), prompt=prompt), 0)
    chain.open(2, make_request(SamplingParams(), stop=StopRules(max_tokens=1, token_ids=(10,))), 0)
    chosen = chain.choose([ChooseRow(1, 0, 0), ChooseRow(2, 0, 0)], logits_of(np.zeros((1, 10), np.float32)))
    assert [one.error and one.error.split()[0] for one in chosen] == ["prompt", "stop_token_ids"]


def test_extreme_logits_and_temperatures_do_not_overflow() -> None:
    largest = float(np.finfo(np.float32).max)
    for temperature in (0.0, 1e-320, 1e-6, 1.0, 2.0):
        chosen = choose_one(SamplingParams(temperature=temperature), [-largest, largest, 0.0, -np.inf], num_logprobs=4)
        assert chosen.token_ids == [1]
        assert chosen.logprobs == [TokenLogprob(1, 0.0, ((1, 0.0), (2, LOWEST), (0, LOWEST), (3, LOWEST)))]
    penalised = SamplingParams(temperature=0.0, repetition_penalty=1e-30, logit_bias=((2, 100.0),))
    assert choose_one(penalised, [1.0, 2.0, 1e20, 0.0]).token_ids == [2]


@pytest.mark.parametrize("temperature", [1e-320, 1e-30, 1e-6])
def test_at_a_tiny_temperature_equal_logits_stay_equally_likely(temperature: float) -> None:
    params = SamplingParams(temperature=temperature, seed=3)
    tokens = [choose_one(params, [8.0, 0.0, 8.0, 7.9], position).token_ids[0] for position in range(40)]
    assert set(tokens) == {0, 2}


@pytest.mark.parametrize("temperature", [0.3, 2.0])
def test_asking_for_logprobs_does_not_change_what_is_drawn(temperature: float) -> None:
    params = SamplingParams(temperature=temperature, seed=9)
    values = np.random.default_rng(2).standard_normal(VOCAB).astype(np.float32)
    for position in range(20):
        assert choose_one(params, values, position).token_ids == choose_one(params, values, position, 2).token_ids


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_bias_of_minus_100_bans_and_of_100_forces(temperature: float) -> None:
    values = np.random.default_rng(5).standard_normal(VOCAB).astype(np.float32)
    best = int(values.argmax())
    banned = SamplingParams(temperature=temperature, logit_bias=((best, -100.0),), top_k=2)
    assert choose_one(banned, values).token_ids != [best]
    assert choose_one(SamplingParams(temperature=temperature, logit_bias=((33, 100.0),)), values).token_ids == [33]


def test_logprobs_are_raw_whatever_the_parameters() -> None:
    params = SamplingParams(temperature=0.1, logit_bias=((2, 100.0),), bad_words=((0,),), presence_penalty=2.0)
    chosen = choose_one(params, np.log(np.array([0.5, 0.3, 0.2], np.float32)), num_logprobs=2)
    assert chosen.token_ids == [2]
    assert chosen.logprobs is not None
    entry = chosen.logprobs[0]
    assert entry.logprob == pytest.approx(np.log(0.2), abs=1e-6)
    assert [token for token, _ in entry.top] == [0, 1]
    assert [value for _, value in entry.top] == pytest.approx(np.log([0.5, 0.3]), abs=1e-6)


def test_logprobs_with_zero_alternatives_have_the_chosen_token_only() -> None:
    chosen = choose_one(SamplingParams(temperature=0.0), [0.0, 0.0], num_logprobs=0)
    assert chosen.logprobs is not None
    assert (chosen.logprobs[0].top, chosen.logprobs[0].token_id) == ((), 0)
    assert chosen.logprobs[0].logprob == pytest.approx(-np.log(2))


def test_score_prompt_scores_each_row_finitely() -> None:
    values = np.array([[0.0, 1.0, -np.inf], [5.0, 5.0, 5.0], [np.nan, 1.0, 2.0]], np.float32)
    before = values.copy()
    chain = SamplerChain(3, EOS)
    chain.open(1, make_request(SamplingParams(temperature=0.0, logit_bias=((0, 50.0),)), 2), 0)
    first, second = chain.score_prompt(1, 0, [2, 1], logits_of(values))
    assert first.token_id == 2
    assert first.logprob == LOWEST
    assert [token for token, _ in first.top] == [1, 0]
    assert second.logprob == pytest.approx(-np.log(3))
    assert [token for token, _ in second.top] == [0, 1]
    assert chain.score_prompt(1, 2, [1], logits_of(values)) == [TokenLogprob(1, LOWEST)]
    assert np.array_equal(values, before, equal_nan=True)


def test_close_forgets_and_may_be_repeated() -> None:
    chain = SamplerChain(3, EOS)
    chain.open(1, make_request(SamplingParams()), 0)
    chain.close(1)
    chain.close(1)
    with pytest.raises(KeyError):
        chain.choose([ChooseRow(1, 0, 0)], logits_of(np.zeros((1, 3), np.float32)))
