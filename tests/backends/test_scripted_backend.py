"""The scripted backend: rows in the plan's order, and lengths that refuse what a real cache would refuse."""

import pytest

from tidegate.backends.scripted import EOS_TOKEN_ID, VOCAB_SIZE, ScriptedBackend
from tidegate.core.backend import BackendError
from tidegate.core.plan import DecodeRow, KvDrop, KvShare, KvTruncate, PrefillSlice, StepPlan


def backend() -> ScriptedBackend:
    return ScriptedBackend(max_sequences=4, max_model_len=10, num_blocks=8, block_tokens=2, max_step_tokens=12)


def test_rows_stand_in_the_order_of_the_plan() -> None:
    engine = backend()
    engine.execute(StepPlan(prefill=[PrefillSlice(0, 0, [1, 2], wants_last=True)]))
    plan = StepPlan(
        decode=[DecodeRow(0, 2, 5)],
        prefill=[
            PrefillSlice(1, 0, [1, 2, 3], wants_last=True, wants_all=True),
            PrefillSlice(2, 0, [1, 2], wants_last=False),
            PrefillSlice(3, 0, [1, 2, 3], wants_last=True),
        ],
    )
    logits = engine.execute(plan)
    assert logits.rows == [(0, 2), (1, 0), (1, 1), (1, 2), (3, 2)]
    assert logits.values.shape == (5, 1)
    assert engine.lengths == {0: 3, 1: 3, 2: 2, 3: 3}


def test_moves_come_before_tokens() -> None:
    engine = backend()
    engine.execute(StepPlan(prefill=[PrefillSlice(0, 0, [1, 2, 3], wants_last=True)]))
    plan = StepPlan(
        moves=[KvShare(0, 1, 3), KvTruncate(1, 2), KvDrop(0), KvDrop(3)],
        decode=[DecodeRow(1, 2, 9)],
        prefill=[PrefillSlice(0, 0, [4], wants_last=True)],
    )
    engine.execute(plan)
    assert engine.lengths == {0: 1, 1: 3}


MISFITS = {
    "a hole": StepPlan(decode=[DecodeRow(0, 4, 1)]),
    "an overlap": StepPlan(prefill=[PrefillSlice(0, 2, [1], wants_last=True)]),
    "an empty slice": StepPlan(prefill=[PrefillSlice(0, 3, [], wants_last=True)]),
    "a sequence id too high": StepPlan(prefill=[PrefillSlice(4, 0, [1], wants_last=True)]),
    "a sequence too long": StepPlan(prefill=[PrefillSlice(1, 0, [0] * 11, wants_last=True)]),
    "a step too long": StepPlan(prefill=[PrefillSlice(i, 0, [0] * 7, wants_last=True) for i in (1, 2)]),
    "sharing more than there is": StepPlan(moves=[KvShare(0, 1, 4)]),
    "sharing onto tokens": StepPlan(moves=[KvShare(0, 0, 1)]),
    "truncating to more": StepPlan(moves=[KvTruncate(0, 4)]),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_plan_that_does_not_fit_is_an_error(name: str) -> None:
    engine = backend()
    engine.execute(StepPlan(prefill=[PrefillSlice(0, 0, [1, 2, 3], wants_last=True)]))
    with pytest.raises(BackendError):
        engine.execute(MISFITS[name])


def test_caps_and_close() -> None:
    engine = backend()
    assert (engine.caps.vocab_size, engine.caps.eos_token_ids) == (VOCAB_SIZE, (EOS_TOKEN_ID,))
    assert (engine.caps.max_model_len, engine.caps.max_sequences, engine.caps.max_step_tokens) == (10, 4, 12)
    assert (engine.caps.num_blocks, engine.caps.block_tokens) == (8, 2)
    assert engine.execute(StepPlan()).values.shape == (0, 1)
    engine.close()
    engine.close()
    assert engine.lengths == {}
