"""The simulated backend: a Backend like any other, and a strict one."""

import numpy as np
import pytest

from tidegate.backends.simulated import BOS_TOKEN, CostModel, SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.backend import Backend, BackendError, StepLogits
from tidegate.core.plan import DecodeRow, KvDrop, KvMove, KvShare, KvTruncate, PrefillSlice, StepPlan
from tidegate.testing.check_backend import BACKEND_CHECKS, check_backend
from tidegate.testing.manual_clock import ManualClock

SMALL = SimulatedShape(max_model_len=16, max_sequences=4, max_step_tokens=12, num_blocks=6, block_tokens=4)


@pytest.mark.parametrize("model", SimulatedModel)
@pytest.mark.parametrize("check", BACKEND_CHECKS)
def test_every_model_does_what_every_backend_must(model: SimulatedModel, check) -> None:  # noqa: ANN001
    check_backend(lambda: SimulatedBackend(model), [check])


def test_a_backend_without_sharing_and_cutting_passes_what_is_left() -> None:
    shape = SimulatedShape(can_share=False, can_truncate=False)
    check_backend(lambda: SimulatedBackend(SimulatedModel.HISTORY, shape))


class _Forgetful(SimulatedBackend):
    """Wrong on purpose: its drops are lost."""

    def execute(self, plan: StepPlan) -> StepLogits:
        plan.moves = [move for move in plan.moves if not isinstance(move, KvDrop)]
        return super().execute(plan)


class _Approximate(SimulatedBackend):
    """Wrong on purpose: its logits depend on the size of the step."""

    def execute(self, plan: StepPlan) -> StepLogits:
        logits = super().execute(plan)
        logits.values += np.float32(0.001 * plan.num_tokens)
        return logits


@pytest.mark.parametrize(("make", "error"), [(_Forgetful, BackendError), (_Approximate, AssertionError)])
def test_the_checker_notices_a_wrong_backend(make: type[SimulatedBackend], error: type[Exception]) -> None:
    def factory() -> Backend:
        return make(SimulatedModel.HISTORY)

    with pytest.raises(error):
        check_backend(factory)


def test_the_successor_of_each_byte_is_the_likeliest_by_far() -> None:
    backend = SimulatedBackend()
    plan = StepPlan(prefill=[PrefillSlice(0, 0, [*range(256), BOS_TOKEN], wants_last=True, wants_all=True)])
    values = backend.execute(plan).values
    assert values.argmax(axis=1).tolist() == [*range(1, 256), 0, 0]
    probabilities = np.exp(values) / np.exp(values).sum(axis=1, keepdims=True)
    assert probabilities.max(axis=1).min() > 0.999


def test_the_hash_model_forgets_and_the_history_model_does_not() -> None:
    def last(model: SimulatedModel, tokens: list[int]) -> list[float]:
        backend = SimulatedBackend(model)
        return list(backend.execute(StepPlan(prefill=[PrefillSlice(0, 0, tokens, wants_last=True)])).values[0])

    near, far = [1, 5, 6, 7, 8], [2, 5, 6, 7, 8]
    assert last(SimulatedModel.HASH, near) == last(SimulatedModel.HASH, far)
    assert last(SimulatedModel.HISTORY, near) != last(SimulatedModel.HISTORY, far)
    assert last(SimulatedModel.HASH, [5, 6, 7, 8]) != last(SimulatedModel.HASH, [9, 6, 7, 8])


def _slice(seq_id: int, start: int, token_ids: list[int]) -> StepPlan:
    return StepPlan(prefill=[PrefillSlice(seq_id, start, token_ids, wants_last=True)])


def _moves(*moves: KvMove) -> StepPlan:
    return StepPlan(moves=list(moves))


# Each after sequence 0 holds eight tokens and sequence 1 two.
MISUSE = [
    ("gap before a decode", StepPlan(decode=[DecodeRow(0, 9, 1)]), "gap"),
    ("position already held", StepPlan(decode=[DecodeRow(0, 7, 1)]), "gap"),
    ("gap before a slice", _slice(2, 1, [1]), "gap"),
    ("empty slice", _slice(2, 0, []), "empty"),
    ("token outside the vocabulary", _slice(2, 0, [258]), "vocabulary"),
    ("id out of range", _slice(4, 0, [1]), "below 4"),
    ("too many tokens", _slice(2, 0, [1] * 13), "at most 12"),
    ("context overrun", _slice(0, 8, [1] * 9), "context"),
    ("twice in one step", StepPlan(decode=[DecodeRow(0, 8, 1), DecodeRow(0, 9, 1)]), "twice"),
    ("share into one that holds tokens", _moves(KvShare(0, 1, 2)), "not empty"),
    ("share more than there is", _moves(KvShare(0, 2, 9)), "cannot share"),
    ("share nothing", _moves(KvShare(0, 2, 0)), "cannot share"),
    ("cut to more than there is", _moves(KvTruncate(1, 3)), "cannot be cut"),
    ("share after the drop", _moves(KvDrop(0), KvShare(0, 2, 2)), "cannot share"),
]


@pytest.mark.parametrize(("plan", "message"), [case[1:] for case in MISUSE], ids=[case[0] for case in MISUSE])
def test_a_plan_that_no_cache_could_carry_out_is_refused(plan: StepPlan, message: str) -> None:
    backend = SimulatedBackend(shape=SMALL)
    backend.execute(StepPlan(prefill=[PrefillSlice(0, 0, [1] * 8, False), PrefillSlice(1, 0, [1] * 2, False)]))
    with pytest.raises(BackendError, match=message):
        backend.execute(plan)


def test_shared_tokens_take_their_cells_once_and_room_runs_out() -> None:
    backend = SimulatedBackend(shape=SMALL)
    backend.execute(_slice(0, 0, [1] * 12))
    backend.execute(_moves(KvShare(0, 1, 10), KvShare(1, 2, 10)))
    assert backend.cache.num_used_cells == 12
    backend.execute(_slice(1, 10, [1] * 6))
    backend.execute(_slice(2, 10, [1] * 6))
    with pytest.raises(BackendError, match="no room"):
        backend.execute(_slice(3, 0, [1]))
    backend.execute(_moves(KvDrop(0), KvDrop(1)))
    assert backend.cache.num_used_cells == 16
    backend.execute(_moves(KvDrop(2)))
    assert backend.cache.num_used_cells == 0
    assert backend.cache.seq_ids == ()


def test_each_step_takes_its_declared_price() -> None:
    clock = ManualClock(now=0.0)
    backend = SimulatedBackend(elapse=clock.advance)
    backend.execute(_slice(0, 0, [1] * 100))
    assert clock.now() == pytest.approx(0.020 + 100 * 0.000035)
    backend.execute(StepPlan(decode=[DecodeRow(0, 100, 1)]))
    assert clock.now() == pytest.approx(0.0235 + 0.045)
    backend.execute(_moves(KvDrop(0)))
    assert clock.now() == pytest.approx(0.0685)


def test_a_mixed_step_pays_for_both_parts() -> None:
    plan = StepPlan(decode=[DecodeRow(0, 5, 1), DecodeRow(1, 5, 1)], prefill=_slice(2, 0, [1] * 10).prefill)
    assert CostModel().price_s(plan) == pytest.approx(0.020 + 10 * 0.000035 + 0.045)
