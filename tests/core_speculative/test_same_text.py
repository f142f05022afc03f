"""Speculation changes how many tokens a step brings and nothing else: token for token, logprob for logprob."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.budget import StepLimits
from tidegate.core.sampler.chain import SamplerChain
from tidegate.inference.finish import EngineFinish
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.testing.core_driver import ChoiceRecord, CoreDriver
from tidegate.testing.requests import make_request

VOCAB = 24
CONTEXT = 64
EOS = VOCAB - 1
IDS = st.integers(0, VOCAB - 1)

SHAPES = st.builds(
    SimulatedShape,
    vocab_size=st.just(VOCAB),
    max_model_len=st.just(CONTEXT),
    max_sequences=st.integers(1, 4),
    max_step_tokens=st.integers(4, 24),
    num_blocks=st.integers(16, 40),
    block_tokens=st.sampled_from([4, 5]),
    can_share=st.booleans(),
)
LIMITS = st.builds(StepLimits, max_prefill_tokens=st.integers(1, 30), max_draft_tokens=st.integers(1, 8))
MODELS = st.sampled_from(list(SimulatedModel)[1:])

SAMPLING = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
    top_p=st.sampled_from([1.0, 0.7]),
    top_k=st.sampled_from([0, 2]),
    min_p=st.sampled_from([0.0, 0.2]),
    presence_penalty=st.sampled_from([0.0, 0.0, 0.5, -1.0]),
    frequency_penalty=st.sampled_from([0.0, 0.0, 0.2, -1.0]),
    repetition_penalty=st.sampled_from([1.0, 1.0, 1.2, 0.8]),
    logit_bias=st.lists(st.tuples(IDS, st.sampled_from([-5.0, 2.0])), max_size=2).map(tuple),
    seed=st.integers(0, 5),
    allowed_token_ids=st.none() | st.lists(IDS, min_size=1, max_size=6, unique=True).map(tuple),
    bad_words=st.lists(st.lists(IDS, min_size=1, max_size=3).map(tuple), max_size=2).map(tuple),
)
STOPS = st.builds(
    StopRules,
    max_tokens=st.integers(1, 40),
    token_ids=st.lists(IDS, max_size=1).map(tuple),
    min_tokens=st.integers(0, 12),
    ignore_eos=st.booleans(),
)


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    start = draw(st.lists(IDS, min_size=1, max_size=8))
    return {
        "prompt": start * draw(st.integers(1, 3)),
        "stop": draw(STOPS),
        "sampling": draw(SAMPLING),
        "num_choices": draw(st.sampled_from([1, 1, 1, 2, 4])),
        "num_logprobs": draw(st.sampled_from([None, 0, 2])),
        "num_prompt_logprobs": draw(st.sampled_from([None, None, 1])),
        "priority": draw(st.integers(-1, 1)),
    }


def driver_of(model: SimulatedModel, shape: SimulatedShape, limits: StepLimits) -> CoreDriver:
    return CoreDriver(SimulatedBackend(model, shape), SamplerChain(shape.vocab_size, (EOS,)), limits=limits)


@cache
def unguessed(request: InferenceRequest, model: SimulatedModel) -> tuple[ChoiceRecord, ...]:
    driver = driver_of(model, SimulatedShape(vocab_size=VOCAB, max_model_len=CONTEXT), StepLimits())
    driver.add(request)
    driver.run()
    return tuple(driver.records[request.request_id, choice] for choice in range(request.num_choices))


def assert_same_text(driver: CoreDriver, request: InferenceRequest, model: SimulatedModel) -> None:
    for choice, expected in enumerate(unguessed(request, model)):
        record = driver.records[request.request_id, choice]
        length = len(record.token_ids) if record.finish is EngineFinish.ABORTED else len(expected.token_ids)
        assert record.token_ids == expected.token_ids[:length]
        assert record.logprobs == expected.logprobs[:length]
        if record.finish is not EngineFinish.ABORTED:
            assert record.prompt_logprobs == expected.prompt_logprobs
            assert (record.finish, record.stop_token, record.error) == (
                expected.finish,
                expected.stop_token,
                expected.error,
            )


@given(
    model=MODELS,
    shape=SHAPES,
    limits=LIMITS,
    wishes=st.lists(bodies(), min_size=1, max_size=5),
    acts=st.lists(st.tuples(st.sampled_from(["step", "hold", "free", "abort"]), st.integers(0, 4)), max_size=30),
)
@settings(max_examples=60, deadline=None)
def test_any_parameters_budgets_and_interruptions_give_the_text_of_ordinary_decoding(
    model: SimulatedModel,
    shape: SimulatedShape,
    limits: StepLimits,
    wishes: list[dict[str, Any]],
    acts: list[tuple[str, int]],
) -> None:
    driver = driver_of(model, shape, limits)
    requests = [make_request(f"r{index}", **wish) for index, wish in enumerate(wishes)]
    driver.add(*requests)
    for act, index in acts:
        request_id = f"r{index % len(requests)}"
        if act == "abort":
            driver.abort(request_id, index % 3 or None)
        elif act != "step":
            driver.hold(request_id, held=act == "hold")
        driver.step()
    for request in requests:
        driver.hold(request.request_id, held=False)
    driver.run()
    driver.assert_at_rest()
    driver.flush()
    assert driver.backend._inner.cache.num_used_cells == 0  # type: ignore[attr-defined]
    for request in requests:
        assert_same_text(driver, request, model)


PARAMETERS: dict[str, dict[str, Any]] = {
    "greedy": {"sampling": SamplingParams(temperature=0.0)},
    "greedy with logprobs": {"sampling": SamplingParams(temperature=0.0), "num_logprobs": 2},
    "sampled": {"sampling": SamplingParams(temperature=0.5, seed=3), "num_logprobs": 1},
    "narrowed": {"sampling": SamplingParams(temperature=1.0, top_k=2, top_p=0.9, seed=4)},
    "penalised": {"sampling": SamplingParams(temperature=0.0, frequency_penalty=0.05), "num_logprobs": 0},
    "rewarded": {"sampling": SamplingParams(temperature=0.7, repetition_penalty=0.9, presence_penalty=-1.0)},
    "bad words": {"sampling": SamplingParams(temperature=0.0, bad_words=((5, 6, 7, 8),))},
    "biased": {"sampling": SamplingParams(temperature=0.0, logit_bias=((3, 4.0),))},
    "allowed": {"sampling": SamplingParams(temperature=0.4, allowed_token_ids=(1, 2, 3, 4, 5), seed=9)},
    "early": {
        "sampling": SamplingParams(temperature=0.0),
        "stop": StopRules(max_tokens=60, min_tokens=20, ignore_eos=False),
    },
    "four choices": {"sampling": SamplingParams(temperature=0.5, seed=1), "num_choices": 4},
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_drafts_are_accepted_and_the_text_stays(name: str) -> None:
    model, shape = SimulatedModel.REPEATING, SimulatedShape(vocab_size=VOCAB, max_model_len=256)
    fields = {"stop": StopRules(max_tokens=60, ignore_eos=True), **PARAMETERS[name]}
    records = []
    for max_draft_tokens in (0, 6):
        driver = driver_of(model, shape, StepLimits(max_draft_tokens=max_draft_tokens))
        driver.add(make_request("r", [1, 2, 3, 4, 5, 6, 7, 8] * 3, **fields))
        driver.run()
        driver.assert_at_rest()
        records.append([(r.token_ids, r.logprobs, r.finish) for r in driver.records.values()])
        gauges = driver.core.statistics()
        assert (gauges.num_accepted_tokens > 3) == (max_draft_tokens > 0), gauges
        assert gauges.num_accepted_tokens <= gauges.num_draft_tokens
    assert records[0] == records[1]
