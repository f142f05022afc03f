"""CostFitter: what can be learned from totals, and what is not believed."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.lifecycle.cost_model import CostFitter, CostModel, StepTotals
from tidegate.lifecycle.engine_load import EngineLoad
from tidegate.lifecycle.forecast import MIN_ROW_TIMES, Forecast, RowTimes

TRUE = CostModel(prefill_base_s=0.02, prefill_token_s=0.000035, step_s=0.045)


def step(totals: StepTotals, num_prefill: int, *, num_decodes: int = 0, seconds: float | None = None) -> StepTotals:
    """One more step of an engine with the true costs, or one that took `seconds`."""
    if not num_prefill:
        took = TRUE.step_s if seconds is None else seconds
        return replace(
            totals, decode_steps_s=totals.decode_steps_s + took, num_decode_steps=totals.num_decode_steps + 1
        )
    cost = TRUE.prefill_base_s + TRUE.prefill_token_s * num_prefill + (TRUE.step_s if num_decodes else 0.0)
    return replace(
        totals,
        prefill_steps_s=totals.prefill_steps_s + (cost if seconds is None else seconds),
        num_prefill_steps=totals.num_prefill_steps + 1,
        num_mixed_steps=totals.num_mixed_steps + bool(num_decodes),
        num_prefill_tokens=totals.num_prefill_tokens + num_prefill,
    )


def fitted(sizes: list[int], *, every: int = 1, num_decodes: int = 0) -> CostFitter:
    fitter, totals = CostFitter(), StepTotals()
    fitter.observe(totals)
    for i, size in enumerate(sizes):
        totals = step(step(totals, 0), size, num_decodes=num_decodes)
        if i % every == every - 1:
            assert fitter.observe(totals)
    return fitter


def close_to(model: CostModel | None, expected: CostModel) -> None:
    assert model is not None
    assert (model.prefill_base_s, model.prefill_token_s, model.step_s) == pytest.approx(
        (expected.prefill_base_s, expected.prefill_token_s, expected.step_s), rel=1e-3
    )


@pytest.mark.parametrize("num_decodes", [0, 3], ids=["alone", "beside decodes"])
@pytest.mark.parametrize("every", [1, 3, 7])
def test_the_true_costs_are_found_however_often_one_looks(every: int, num_decodes: int) -> None:
    sizes = [(i * 37) % 500 + 10 for i in range(70)]
    close_to(fitted(sizes, every=every, num_decodes=num_decodes).model, TRUE)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 2000), min_size=8, max_size=40), st.integers(1, 5))
def test_what_is_learned_is_never_negative_and_right_for_what_was_seen(sizes: list[int], every: int) -> None:
    model = fitted(sizes, every=every).model
    if model is None:
        assert len(sizes) // every < 8
        return
    assert min(model.prefill_base_s, model.prefill_token_s) >= 0
    seen = [*sizes[: len(sizes) // every * every]]
    predicted = sum(model.prefill_base_s + model.prefill_token_s * size for size in seen)
    true = sum(TRUE.prefill_base_s + TRUE.prefill_token_s * size for size in seen)
    assert predicted == pytest.approx(true, rel=0.25)


def test_equal_steps_tell_what_such_a_step_takes() -> None:
    model = fitted([512] * 20).model
    assert model is not None
    assert model.prefill_base_s + 512 * model.prefill_token_s == pytest.approx(0.02 + 512 * 0.000035)


def test_nothing_is_known_before_enough_was_seen() -> None:
    assert CostFitter().model is None
    assert fitted([100, 200, 300]).model is None
    assert fitted([100] * 30, every=10).model is None, "thirty steps, but only three looks"
    only_prefills, totals = CostFitter(), StepTotals()
    for size in range(1, 40):
        totals = step(totals, size)
        only_prefills.observe(totals)
    assert only_prefills.model is None


def test_looking_again_at_the_same_totals_teaches_nothing() -> None:
    fitter = fitted([100, 300] * 10)
    before = fitter.model
    totals = StepTotals(1.0, 1, 0, 1, 1.0, 1)
    fresh = CostFitter()
    assert not fresh.observe(totals)
    assert not fresh.observe(totals)
    assert fitter.model == before


def test_a_restarted_engine_begins_its_totals_anew_and_what_was_learned_stays() -> None:
    fitter = fitted([100, 300] * 10)
    before = fitter.model
    assert not fitter.observe(StepTotals())
    assert fitter.model == before
    totals = step(StepTotals(), 100)
    assert fitter.observe(totals)
    close_to(fitter.model, TRUE)


def test_one_step_that_took_minutes_does_not_count_as_such() -> None:
    sizes = [(i * 37) % 500 + 10 for i in range(60)]
    fitter, totals = CostFitter(), StepTotals()
    for size in sizes:
        totals = step(step(totals, 0), size)
        fitter.observe(totals)
    totals = step(step(totals, 0, seconds=300.0), 100, seconds=300.0)
    fitter.observe(totals)
    model = fitter.model
    assert model is not None
    assert model.step_s < 2 * TRUE.step_s
    assert model.prefill_base_s + 100 * model.prefill_token_s < 2 * (TRUE.prefill_base_s + 100 * TRUE.prefill_token_s)


def test_costs_that_change_are_learned_anew() -> None:
    fitter, totals = CostFitter(), StepTotals()
    for size in [50, 450] * 30:
        totals = step(totals, 0, seconds=0.01)
        totals = step(totals, size, seconds=0.005 + size * 0.0001)
        fitter.observe(totals)
    for size in [50, 450] * 150:
        totals = step(step(totals, 0), size)
        fitter.observe(totals)
    model = fitter.model
    assert model is not None
    assert model.step_s == pytest.approx(TRUE.step_s, rel=0.05)
    assert model.prefill_base_s + 450 * model.prefill_token_s == pytest.approx(0.02 + 450 * 0.000035, rel=0.05)


def test_a_declared_model_is_not_talked_out_of() -> None:
    forecast = Forecast(TRUE)
    totals = StepTotals()
    for _ in range(30):
        totals = step(step(totals, 0, seconds=9.0), 10, seconds=9.0)
        assert not forecast.observe(totals)
    assert forecast.model == TRUE
    assert Forecast().survey(EngineLoad(1), 0.0) is None


def test_costs_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="below zero"):
        CostModel(-1.0, 0.0, 0.0)


def test_row_times_are_a_mean_that_forgets_and_is_not_surprised() -> None:
    times = RowTimes()
    for _ in range(MIN_ROW_TIMES - 1):
        times.observe(2.0)
        assert times.mean_s is None
    times.observe(2.0)
    assert times.mean_s == pytest.approx(2.0)
    times.observe(3600.0)
    assert times.mean_s is not None
    assert times.mean_s < 4.0
    for _ in range(100):
        times.observe(1.0)
    assert times.mean_s == pytest.approx(1.0, rel=0.05)
