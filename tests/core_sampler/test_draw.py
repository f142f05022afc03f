"""The draw: reproducible, independent of everything but its three inputs, and distributed as it should be."""

import numpy as np
import pytest

from tidegate.core.backend import StepLogits
from tidegate.core.chooser import ChooseRow
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.sampler.draw import pick, stream_key, uniforms
from tidegate.core.sampler.weights import BLOCK, Weights
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules

NUM_DRAWS = 20_000
FIVE_SIGMA = 5.0


def numbers(keys: list[int], positions: list[int]) -> list[float]:
    drawn: list[float] = uniforms(np.array(keys, np.uint64), np.array(positions, np.uint64)).tolist()
    return drawn


def chi_square_is_plausible(observed: list[int], expected: list[float]) -> bool:
    """Compares with the mean (degrees of freedom) and standard deviation of the chi-square distribution."""
    freedom = len(observed) - 1
    score = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return abs(score - freedom) < FIVE_SIGMA * (2 * freedom) ** 0.5


def test_numbers_never_change_between_versions() -> None:
    keys = [stream_key(0, 0), stream_key(42, 1), stream_key(-1, 0)]
    assert numbers(keys, [0, 7, 2**40]) == [0.13870941014555427, 0.5649028026636309, 0.2228915498952142]


def test_the_generator_is_splitmix64() -> None:
    """The first outputs of the published generator for state 1234567 (known from its reference code)."""
    words = [round(number * 2**53) for number in numbers([1234567] * 3, [0, 1, 2])]
    assert words == [value >> 11 for value in (6457827717110365317, 3203168211198807973, 9817491932198370423)]


def test_only_the_low_64_bits_of_a_seed_count_and_choices_differ() -> None:
    assert stream_key(5, 0) == stream_key(5 + 2**64, 0)
    assert stream_key(-(2**63), 0) == stream_key(2**63, 0)
    assert len({stream_key(seed, choice) for seed in range(-50, 50) for choice in range(50)}) == 5000


@pytest.mark.parametrize("axis", ["seed", "choice", "position"])
def test_numbers_are_uniform_along_each_axis_and_between_neighbours(axis: str) -> None:
    run = range(NUM_DRAWS)
    drawn = {
        "seed": lambda: numbers([stream_key(i, 0) for i in run], [0] * NUM_DRAWS),
        "choice": lambda: numbers([stream_key(7, i) for i in run], [3] * NUM_DRAWS),
        "position": lambda: numbers([stream_key(7, 0)] * NUM_DRAWS, list(run)),
    }[axis]()
    observed = np.histogram(drawn, bins=100, range=(0, 1))[0].tolist()
    assert chi_square_is_plausible(observed, [NUM_DRAWS / 100] * 100)
    pairs = np.histogram2d(drawn[:-1], drawn[1:], bins=20, range=((0, 1), (0, 1)))[0].ravel().tolist()
    assert chi_square_is_plausible(pairs, [(NUM_DRAWS - 1) / 400] * 400)


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(temperature=0.5),
        SamplingParams(temperature=2.0, top_k=10),
        SamplingParams(top_p=0.7),
        SamplingParams(min_p=0.2),
        SamplingParams(allowed_token_ids=tuple(range(3, 30, 2)), presence_penalty=0.0),
    ],
    ids=str,
)
def test_tokens_come_as_often_as_their_probabilities_say(params: SamplingParams) -> None:
    vocab = 40
    raw = np.random.default_rng(11).standard_normal(vocab).astype(np.float32)
    logits = StepLogits([(0, 0)], raw[None, :])
    chain = SamplerChain(vocab, ())
    chain.open(1, InferenceRequest("r", b"", params, StopRules(NUM_DRAWS)), 0)
    counts = [0] * vocab
    for chosen in chain.choose([ChooseRow(1, 0, i) for i in range(NUM_DRAWS)], logits):
        counts[chosen.token_ids[0]] += 1
    shares = exact_shares(raw, params)
    assert all(counts[i] == 0 for i in range(vocab) if shares[i] == 0)
    kept = [i for i in range(vocab) if shares[i] > 0]
    assert chi_square_is_plausible([counts[i] for i in kept], [NUM_DRAWS * float(shares[i]) for i in kept])


def exact_shares(raw: np.ndarray[tuple[int], np.dtype[np.float32]], params: SamplingParams) -> list[float]:
    values = raw.astype(np.float64)
    if params.allowed_token_ids is not None:
        values[[i for i in range(len(values)) if i not in params.allowed_token_ids]] = -np.inf
    weights = np.exp((values - values.max()) / params.temperature)
    order = np.argsort(-weights, kind="stable")
    if params.top_k:
        weights[order[params.top_k :]] = 0.0
    before = np.cumsum(weights[order]) - weights[order]
    weights[order[before >= params.top_p * weights.sum()]] = 0.0
    weights[weights < params.min_p] = 0.0
    shares: list[float] = (weights / weights.sum()).tolist()
    return shares


@pytest.mark.parametrize("size", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 5000])
def test_pick_finds_the_share_at_its_edges_and_never_a_weight_of_zero(size: int) -> None:
    values = np.ones(size, np.float32)
    values[::2] = 0.0 if size > 1 else 1.0
    weights = Weights.of(values)
    whole = [i for i in range(size) if values[i]]
    for rank in {0, len(whole) // 2, len(whole) - 1}:
        assert pick(weights, (rank + 0.5) / len(whole)) == whole[rank]
    assert pick(weights, 0.0) == whole[0]
    assert pick(weights, 1.0 - 2.0**-53) == whole[-1]
    assert pick(weights, 1.0) == whole[-1]


def test_pick_skips_empty_blocks_at_both_ends() -> None:
    values = np.zeros(6 * BLOCK, np.float32)
    values[3 * BLOCK + 5] = 1e-30
    weights = Weights.of(values)
    assert {pick(weights, number) for number in (0.0, 0.3, 1.0 - 2.0**-53, 1.0)} == {3 * BLOCK + 5}
