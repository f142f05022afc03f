"""Drafts in a step: who gets how many, what is given back, where a run of accepted tokens ends."""

from typing import Any

import pytest

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.backend import BackendCaps
from tidegate.core.budget import StepLimits
from tidegate.core.plan import KvTruncate
from tidegate.core.sampler.chain import SamplerChain
from tidegate.inference.finish import EngineFinish
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.requests import make_request

PERIOD = "".join(chr(code) for code in range(65, 91))
"""The successor model goes on with it: its text is known, and every guess is right once the text has come round."""


def start(shape: SimulatedShape | None = None, **limits: Any) -> CoreDriver:
    shape = shape if shape is not None else SimulatedShape()
    backend = SimulatedBackend(SimulatedModel.SUCCESSOR, shape)
    chain = SamplerChain(shape.vocab_size, backend.caps.eos_token_ids)
    return CoreDriver(backend, chain, limits=StepLimits(**{"max_draft_tokens": 4} | limits))


def drafts_of(driver: CoreDriver) -> list[dict[int, int]]:
    """Returns for each step that decoded how many drafts each sequence id had."""
    plans = [plan for plan in driver.backend.plans if plan.decode]
    return [{row.seq_id: len(row.draft_ids) for row in plan.decode} for plan in plans]


def test_a_quoted_text_takes_few_steps() -> None:
    driver = start()
    driver.add(make_request("r", PERIOD + PERIOD[:3], max_tokens=23))
    driver.run()
    assert driver.records["r", 0].token_ids == list(PERIOD[3:].encode())
    assert drafts_of(driver) == [{0: 2}, {0: 4}, {0: 4}, {0: 4}, {0: 3}]
    gauges = driver.core.statistics()
    assert (gauges.num_drafts, gauges.num_draft_tokens, gauges.num_accepted_tokens) == (5, 17, 17)
    assert (gauges.num_decode_tokens, gauges.num_output_tokens) == (5, 23)


@pytest.mark.parametrize("max_tokens", range(1, 12))
def test_a_budget_of_tokens_is_met_and_nothing_is_guessed_beyond_it(max_tokens: int) -> None:
    driver = start()
    driver.add(make_request("r", PERIOD + PERIOD[:3], max_tokens=max_tokens))
    driver.run()
    record = driver.records["r", 0]
    assert (len(record.token_ids), record.finish) == (max_tokens, EngineFinish.LENGTH)
    assert driver.core.statistics().num_draft_tokens + len(drafts_of(driver)) < max(max_tokens, 1)


@pytest.mark.parametrize("context", range(29, 45))
def test_the_context_is_met_and_nothing_is_guessed_beyond_it(context: int) -> None:
    driver = start(SimulatedShape(max_model_len=context))
    driver.add(make_request("r", PERIOD + PERIOD[:3], max_tokens=500))
    driver.run()
    record = driver.records["r", 0]
    assert (len(record.token_ids), record.finish) == (context - 29 or 0, EngineFinish.LENGTH)
    driver.assert_at_rest()


@pytest.mark.parametrize("stop", PERIOD[4:16])
def test_a_stop_token_ends_a_run_of_accepted_tokens_at_its_place(stop: str) -> None:
    driver = start()
    rules = StopRules(max_tokens=100, token_ids=(ord(stop),))
    driver.add(make_request("r", PERIOD + PERIOD[:3], stop=rules, num_logprobs=0))
    driver.run()
    record = driver.records["r", 0]
    expected = list(PERIOD[3 : PERIOD.index(stop) + 1].encode())
    assert (record.token_ids, record.finish, record.stop_token) == (expected, EngineFinish.STOP_TOKEN, ord(stop))
    assert len(record.logprobs) == len(expected)
    assert driver.core.statistics().num_output_tokens == len(expected)
    driver.assert_at_rest()


def test_wrong_drafts_leave_the_cache_and_their_blocks_come_back() -> None:
    driver = start(SimulatedShape(block_tokens=1, num_blocks=200))
    misleading = PERIOD[:4] + "zzzz" + PERIOD[:3]
    driver.add(make_request("r", misleading, max_tokens=30))
    while driver.core.statistics().num_drafts == 0:
        driver.step()
    cache, gauges = driver.backend._inner.cache, driver.core.statistics()  # type: ignore[attr-defined]
    assert (gauges.num_draft_tokens, gauges.num_accepted_tokens) == (2, 0)
    assert gauges.blocks_used == len(misleading) + 1
    driver.step()
    assert KvTruncate(0, len(misleading) + 1) in driver.backend.plans[-1].moves
    assert len(cache.tokens_of(0)) == len(misleading) + 2
    driver.run()
    driver.assert_at_rest()


def test_a_backend_that_cannot_cut_gets_no_drafts() -> None:
    driver = start(SimulatedShape(can_truncate=False))
    driver.add(make_request("r", PERIOD + PERIOD[:3], max_tokens=20))
    driver.run()
    assert all(not row.draft_ids for plan in driver.backend.plans for row in plan.decode)
    assert driver.core.statistics().num_drafts == 0


def test_a_full_step_is_shared_evenly_and_every_sequence_decodes() -> None:
    driver = start(SimulatedShape(max_sequences=4, max_step_tokens=10), max_prefill_tokens=10)
    for index in range(4):
        driver.add(make_request(f"r{index}", PERIOD + PERIOD[: 3 + index], max_tokens=18))
    driver.run()
    full = [drafts for drafts in drafts_of(driver) if len(drafts) == 4]
    assert full
    for drafts in full:
        assert sum(drafts.values()) <= 6
    assert {tuple(sorted(drafts.values())) for drafts in full[1:]} & {(1, 1, 2, 2)}


def test_a_prompt_goes_before_drafts() -> None:
    driver = start(SimulatedShape(max_step_tokens=9, max_sequences=2), max_prefill_tokens=8)
    driver.add(make_request("r", PERIOD + PERIOD[:3], max_tokens=40))
    while not driver.records["r", 0].token_ids:
        driver.step()
    driver.add(make_request("long", "x" * 64, max_tokens=1))
    while not driver.records["long", 0].token_ids:
        driver.step()
    mixed = [plan for plan in driver.backend.plans if plan.decode and plan.prefill]
    assert len(mixed) == 8
    assert all(len(plan.prefill[0].token_ids) == 8 and not plan.decode[0].draft_ids for plan in mixed)


def test_drafts_take_only_blocks_that_no_running_sequence_needs() -> None:
    """Without drafts nobody is preempted here; with them neither."""
    shape = SimulatedShape(max_sequences=2, num_blocks=20, block_tokens=4)
    numbers = []
    for max_draft_tokens in (0, 8):
        driver = start(shape, max_draft_tokens=max_draft_tokens)
        for index in range(2):
            driver.add(make_request(f"r{index}", PERIOD + PERIOD[:3], max_tokens=11))
        driver.run()
        driver.assert_at_rest()
        numbers.append(driver.core.statistics().num_preemptions)
    assert numbers == [0, 0]


class NarrowBackend(SimulatedBackend):
    """Returns few rows of logits in a pass, and refuses a step of decode rows that wants more."""

    @property
    def caps(self) -> BackendCaps:
        caps = super().caps
        fields = {name: getattr(caps, name) for name in BackendCaps.__slots__}
        return BackendCaps(**fields | {"max_pass_rows": 5})


def test_no_step_wants_more_rows_of_logits_than_a_pass_returns() -> None:
    backend = NarrowBackend(SimulatedModel.SUCCESSOR, SimulatedShape(max_sequences=3))
    driver = CoreDriver(backend, SamplerChain(258, (257,)), limits=StepLimits(max_draft_tokens=4))
    for index in range(3):
        driver.add(make_request(f"r{index}", PERIOD + PERIOD[:3], max_tokens=20))
    driver.run()
    widths = [plan.num_decode_tokens for plan in driver.backend.plans if plan.decode]
    assert max(widths) == 5
    assert all(record.token_ids == list(PERIOD[3:23].encode()) for record in driver.records.values())


@pytest.mark.parametrize("end", ["abort", "hold"])
def test_a_sequence_may_be_aborted_or_held_between_two_steps_with_drafts(end: str) -> None:
    driver = start(SimulatedShape(block_tokens=2, num_blocks=60))
    driver.add(make_request("r", PERIOD + PERIOD[:3] + "zzz" + PERIOD[:3], max_tokens=40))
    while driver.core.statistics().num_drafts < 2:
        driver.step()
    if end == "abort":
        driver.abort("r")
    else:
        driver.hold("r", held=True)
        driver.add(make_request("other", "q" * 70, max_tokens=2))
        for _ in range(6):
            driver.step()
        driver.hold("r", held=False)
    driver.run()
    driver.assert_at_rest()
    expected = EngineFinish.ABORTED if end == "abort" else EngineFinish.LENGTH
    assert driver.records["r", 0].finish is expected


def test_guesses_that_fail_are_given_up_for_a_while() -> None:
    """The prompt repeats, the sampled text does not: of 200 tokens few steps carry drafts."""
    backend = SimulatedBackend(SimulatedModel.HISTORY, SimulatedShape(vocab_size=4))
    driver = CoreDriver(backend, SamplerChain(4, (3,)), limits=StepLimits(max_draft_tokens=8))
    sampling = SamplingParams(temperature=2.0, seed=1)
    driver.add(make_request("r", [0, 1, 2] * 20, sampling=sampling, stop=StopRules(max_tokens=400, ignore_eos=True)))
    driver.run()
    gauges = driver.core.statistics()
    assert 0 < gauges.num_draft_tokens < 0.8 * gauges.num_output_tokens
