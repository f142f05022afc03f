"""The chain against a slow and plain one (float64, full softmax, full sort), over random parameters and histories."""

import math
import random
from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.core.backend import Float32Array, StepLogits
from tidegate.core.chooser import ChooseRow
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.sampler.draw import stream_key, uniforms
from tidegate.core.sampler.transforms import narrow
from tidegate.inference.finish import EngineFinish
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules

EOS = (3, 5)


def transformed(
    raw: Iterable[float], params: SamplingParams, stop: StopRules, prompt: list[int], generated: list[int]
) -> list[float]:
    """Returns the logits after masks, bias and penalties."""
    values = [float(value) for value in raw]
    if params.allowed_token_ids is not None:
        values = [v if i in set(params.allowed_token_ids) else -math.inf for i, v in enumerate(values)]
    for token_id, bias in params.logit_bias:
        values[token_id] += bias
    text = [*prompt, *generated]
    for word in params.bad_words:
        prefix, last = list(word[:-1]), word[-1]
        if not prefix or text[-len(prefix) :] == prefix:
            values[last] = -math.inf
    if len(generated) < stop.min_tokens:
        for token_id in (*stop.token_ids, *(() if stop.ignore_eos else EOS)):
            values[token_id] = -math.inf
    for token_id in set(text):
        if params.repetition_penalty != 1.0:
            v = values[token_id]
            values[token_id] = v / params.repetition_penalty if v > 0 else v * params.repetition_penalty
    for token_id in set(generated):
        values[token_id] -= params.frequency_penalty * generated.count(token_id) + params.presence_penalty
    return values


def distribution(values: list[float], params: SamplingParams) -> dict[int, float]:
    """Returns the probability of each token that may be drawn, by ascending id."""
    order = sorted(range(len(values)), key=lambda i: (-values[i], i))
    if params.temperature == 0.0:
        return {order[0]: 1.0}
    peak = values[order[0]]
    weight = {i: math.exp(max((values[i] - peak) / params.temperature, -1e4)) for i in order}
    kept = order[: params.top_k] if params.top_k else order
    if params.top_p < 1.0:
        total, mass, nucleus = sum(weight[i] for i in kept), 0.0, []
        for i in kept:
            nucleus.append(i)
            mass += weight[i]
            if mass >= params.top_p * total:
                break
        kept = nucleus
    kept = [i for i in kept if weight[i] >= params.min_p]
    total = sum(weight[i] for i in kept)
    return {i: weight[i] / total for i in sorted(kept)}


def inverse_cdf(probabilities: dict[int, float], number: float) -> int:
    """Returns the token whose share contains `number`."""
    mass = 0.0
    for token_id, probability in probabilities.items():
        mass += probability
        if number < mass:
            return token_id
    return max(probabilities)


def log_softmax(raw: Float32Array) -> npt.NDArray[np.float64]:
    """Returns exact log-probabilities."""
    values = np.asarray(raw, dtype=np.float64)
    peak = values.max()
    return values - peak - math.log(np.exp(values - peak).sum())


def number_of(seed: int, choice: int, position: int) -> float:
    return float(uniforms(np.array([stream_key(seed, choice)], np.uint64), np.array([position], np.uint64))[0])


def random_params(dice: random.Random, vocab: int) -> SamplingParams:
    some_ids = [dice.randrange(vocab) for _ in range(4)]
    narrowing = SamplingParams(
        temperature=dice.choice([0.0, 1e-6, 0.3, 1.0, 1.0, 2.0]),
        top_p=dice.choice([1.0, 1.0, 0.999, 0.9, 0.5, 1e-9]),
        top_k=dice.choice([0, 0, 1, 2, 7, vocab, vocab + 5]),
        min_p=dice.choice([0.0, 0.0, 0.01, 0.3, 1.0]),
        seed=dice.choice([0, 1, -1, 2**63 - 1, -(2**63), dice.getrandbits(63)]),
    )
    if dice.random() < 0.4:
        return narrowing  # reads the model's logits where they are
    return msgspec.structs.replace(
        narrowing,
        presence_penalty=dice.choice([0.0, 0.0, -2.0, 2.0, 0.7]),
        frequency_penalty=dice.choice([0.0, 0.0, -2.0, 2.0, 0.3]),
        repetition_penalty=dice.choice([1.0, 1.0, 0.5, 2.0, 1.1]),
        logit_bias=tuple((i, dice.choice([-100.0, 100.0, 3.0])) for i in some_ids[: dice.choice([0, 0, 2])]),
        allowed_token_ids=tuple(dice.choice([None, None, [*range(8), *some_ids], [9, 2, 2]]) or ()) or None,
        bad_words=dice.choice([(), ((some_ids[0],),), ((1, 2), (4, 1, 2), (2, some_ids[1]))]),
    )


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_each_token_and_logprob_is_what_the_reference_says(seed: int) -> None:
    dice, rng = random.Random(seed), np.random.default_rng(seed)
    vocab = dice.choice([10, 64, 700, 1500])
    params = random_params(dice, vocab)
    stop = StopRules(
        max_tokens=9, min_tokens=dice.choice([0, 2]), token_ids=(6,), ignore_eos=dice.choice([False, True])
    )
    prompt = [dice.randrange(min(vocab, 10)) for _ in range(5)]
    request = InferenceRequest("r", np.array(prompt, "<u4").tobytes(), params, stop, num_logprobs=3)
    chain = SamplerChain(vocab, EOS)
    chain.open(1, request, 2)
    generated: list[int] = []
    for position in range(5):
        raw = (rng.standard_normal((1, vocab)) * dice.choice([0.1, 3, 8])).astype(np.float32)
        if dice.random() < 0.3:
            raw = np.round(raw)  # many ties
        chosen = chain.choose([ChooseRow(1, 0, position)], StepLogits([(0, 0)], raw))[0]
        expected = distribution(transformed(raw[0], params, stop, prompt, generated), params)
        assert chosen.finish is None, chosen.error
        token_id = chosen.token_ids[0]
        number = number_of(params.seed, 2, position)
        nearby = {inverse_cdf(expected, number + change) for change in (-3e-6, 0.0, 3e-6)}
        assert token_id in nearby
        entry = chosen.logprobs[0]
        exact = log_softmax(raw[0])
        best = sorted(range(vocab), key=lambda i: (-raw[0][i], i))[:3]
        assert [token for token, _ in entry.top] == best
        assert entry.logprob == pytest.approx(exact[token_id], abs=1e-5)
        assert [value for _, value in entry.top] == pytest.approx([exact[i] for i in best], abs=1e-5)
        generated.append(token_id)


@pytest.mark.parametrize("vocab", [1, 2, 63, 64, 65, 511, 512, 513, 5000, 20_000])
@pytest.mark.parametrize("spread", [0.0, 0.01, 1.0, 6.0])
@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(top_p=0.9),
        SamplingParams(top_p=1 - 1e-12),
        SamplingParams(top_p=1e-12),
        SamplingParams(top_k=20),
        SamplingParams(top_k=4000, top_p=0.7),
        SamplingParams(min_p=0.2),
        SamplingParams(min_p=1e-300),
        SamplingParams(temperature=1e-6, min_p=1.0),
        SamplingParams(temperature=0.5, top_k=300, top_p=0.8, min_p=0.1),
    ],
    ids=str,
)
def test_narrowing_keeps_the_tokens_that_the_reference_keeps(vocab: int, spread: float, params: SamplingParams) -> None:
    raw = (np.random.default_rng(vocab).standard_normal(vocab) * spread).astype(np.float32)
    with np.errstate(all="ignore"):
        found = narrow(raw, float(raw.max()), params, np.empty(vocab, np.float32), None)
    positions = np.arange(vocab) if found.positions is None else found.positions
    weights = found.weights.values.astype(np.float64)
    positions, weights = positions[weights > 0], weights[weights > 0]
    expected = {i: p for i, p in distribution([float(x) for x in raw], params).items() if p > 0}
    assert np.all(np.diff(positions) > 0)
    near_edge = 1 if params.top_p < 1.0 else 0  # a mass that rounds to just the target may move the cut by a token
    differing = set(positions.tolist()) ^ set(expected)
    assert len(differing) <= near_edge or sum(expected.get(i, 0.0) for i in differing) < 1e-6
    shares = weights / weights.sum()
    assert found.weights.total == pytest.approx(weights.sum(), rel=1e-6)
    for position, share in zip(positions.tolist(), shares.tolist(), strict=True):
        assert share == pytest.approx(expected.get(position, share), rel=1e-3)


def test_all_tokens_masked_fails_the_row_with_the_reason() -> None:
    chain = SamplerChain(10, EOS)
    params = SamplingParams(allowed_token_ids=EOS)
    chain.open(1, InferenceRequest("r", b"", params, StopRules(max_tokens=9, min_tokens=1)), 0)
    values = np.zeros((1, 10), np.float32)
    chosen = chain.choose([ChooseRow(1, 0, 0)], StepLogits([(0, 0)], values))[0]
    assert (chosen.token_ids, chosen.finish) == ([], EngineFinish.FAILED)
    assert "allowed_token_ids" in chosen.error
    assert chain.choose([ChooseRow(1, 0, 1)], StepLogits([(0, 0)], values))[0].token_ids[0] in EOS
