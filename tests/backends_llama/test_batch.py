import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.backends.llama_cpp.batch import LlamaBatch, StepTokens, lay_out
from tidegate.core.plan import DecodeRow, PrefillSlice, StepPlan


class BatchStruct(ctypes.Structure):
    """The fields of `llama_batch` (llama.h), as this build has them."""

    _fields_ = (
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.POINTER(ctypes.c_float)),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    )


class FakeApi:
    llama_batch = BatchStruct


def fed(tokens: StepTokens) -> list[tuple[int, int, int, bool]]:
    columns = (tokens.seq_ids, tokens.positions, tokens.token_ids, tokens.wanted)
    return [(int(s), int(p), int(t), bool(w)) for s, p, t, w in zip(*columns, strict=True)]


def rows_as_decoded(tokens: StepTokens) -> list[tuple[int, int]]:
    """Which rows of logits come out of the tokens in the order they are fed."""
    return [(s, p) for s, p, _, wanted in fed(tokens) if wanted]


PLAN = StepPlan(
    decode=[DecodeRow(3, 7, 30), DecodeRow(1, 5, 10)],
    prefill=[
        PrefillSlice(2, 4, [21, 22, 23], wants_last=True),
        PrefillSlice(0, 0, memoryview(np.array([1, 2], "<u4").tobytes()).cast("I"), wants_last=False),
        PrefillSlice(4, 0, [41, 42], wants_last=True, wants_all=True),
    ],
)
PLAN_ROWS = [(3, 7), (1, 5), (2, 6), (4, 0), (4, 1)]


def test_the_unified_layout_feeds_tokens_in_the_order_of_the_plan() -> None:
    tokens = lay_out(PLAN, by_sequence=False)
    assert fed(tokens)[:5] == [
        (3, 7, 30, True),
        (1, 5, 10, True),
        (2, 4, 21, False),
        (2, 5, 22, False),
        (2, 6, 23, True),
    ]
    assert fed(tokens)[5:] == [(0, 0, 1, False), (0, 1, 2, False), (4, 0, 41, True), (4, 1, 42, True)]
    assert tokens.rows == PLAN_ROWS
    assert tokens.row_order is None


def test_the_per_sequence_layout_feeds_tokens_by_rising_sequence_id_and_knows_where_each_row_belongs() -> None:
    tokens = lay_out(PLAN, by_sequence=True)
    assert [s for s, *_ in fed(tokens)] == [0, 0, 1, 2, 2, 2, 3, 4, 4]
    assert tokens.rows == PLAN_ROWS
    assert tokens.row_order is not None
    assert [PLAN_ROWS[i] for i in tokens.row_order] == rows_as_decoded(tokens)


def test_a_sorted_plan_needs_no_reordering() -> None:
    plan = StepPlan(
        decode=[DecodeRow(0, 1, 1), DecodeRow(2, 1, 1)], prefill=[PrefillSlice(5, 0, [1, 2], wants_last=True)]
    )
    assert lay_out(plan, by_sequence=True).row_order is None


def test_sorting_that_moves_no_wanted_row_needs_no_reordering() -> None:
    plan = StepPlan(decode=[DecodeRow(2, 1, 1)], prefill=[PrefillSlice(1, 0, [1, 2], wants_last=False)])
    tokens = lay_out(plan, by_sequence=True)
    assert [s for s, *_ in fed(tokens)] == [1, 1, 2]
    assert tokens.row_order is None


slices = st.tuples(st.integers(0, 5), st.booleans(), st.booleans())
plans = st.tuples(st.permutations(range(8)), st.integers(0, 8), st.lists(slices, min_size=8, max_size=8))


def make_plan(shape: tuple[list[int], int, list[tuple[int, bool, bool]]]) -> StepPlan:
    ids, num_decode, parts = shape
    decode = [DecodeRow(seq_id, 10 + seq_id, 100 + seq_id) for seq_id in ids[:num_decode]]
    prefill = [
        PrefillSlice(seq_id, seq_id, list(range(length)), last, every, num_unwanted=seq_id % 3 if length > 2 else 0)
        for seq_id, (length, last, every) in zip(ids[num_decode:], parts, strict=False)
    ]
    return StepPlan(decode=decode, prefill=prefill)


@given(plans, st.booleans(), st.integers(1, 7), st.integers(1, 4))
def test_every_layout_and_cut_feeds_each_token_once_and_every_row_finds_its_place(
    shape: tuple[list[int], int, list[tuple[int, bool, bool]]], by_sequence: bool, max_tokens: int, max_outputs: int
) -> None:
    plan = make_plan(shape)
    tokens, plain = lay_out(plan, by_sequence=by_sequence), lay_out(plan, by_sequence=False)
    assert sorted(fed(tokens)) == sorted(fed(plain))
    order = range(len(tokens.rows)) if tokens.row_order is None else tokens.row_order
    assert [tokens.rows[i] for i in order] == rows_as_decoded(tokens)
    for seq_id in range(8):
        assert [t for t in fed(tokens) if t[0] == seq_id] == [t for t in fed(plain) if t[0] == seq_id]
    parts = list(tokens.parts(max_tokens, max_outputs)) if len(tokens.token_ids) else []
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(plan.num_tokens))
    for part in parts:
        assert 0 < part.stop - part.start <= max_tokens
        assert int(tokens.wanted[part].sum()) <= max_outputs


@given(plans, st.integers(2, 7), st.integers(2, 4))
def test_even_runs_are_even_in_every_part_and_fillers_stand_behind_their_sequence(
    shape: tuple[list[int], int, list[tuple[int, bool, bool]]], max_tokens: int, max_outputs: int
) -> None:
    plan = make_plan(shape)
    tokens, plain = lay_out(plan, by_sequence=True, even=True), lay_out(plan, by_sequence=True)
    fillers = set(tokens.fillers)
    assert [t for t in fed(tokens) if (t[0], t[1]) not in fillers] == fed(plain)
    assert all(not wanted for s, p, _, wanted in fed(tokens) if (s, p) in fillers)
    order = range(len(tokens.rows)) if tokens.row_order is None else tokens.row_order
    assert [tokens.rows[i] for i in order] == rows_as_decoded(tokens)
    for seq_id, position in fillers:
        assert position == 1 + max(p for s, p, *_ in fed(plain) if s == seq_id)
    parts = list(tokens.parts(max_tokens, max_outputs)) if len(tokens.token_ids) else []
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(len(tokens.token_ids)))
    for part in parts:
        _, widths = np.unique(tokens.seq_ids[part], return_counts=True)
        assert (widths % 2 == 0).all()
        assert part.stop - part.start <= max_tokens
        assert int(tokens.wanted[part].sum()) <= max_outputs


def test_a_row_with_drafts_wants_logits_at_each_of_its_tokens() -> None:
    tokens = lay_out(StepPlan(decode=[DecodeRow(1, 5, 10, [11, 12]), DecodeRow(0, 3, 7)]), by_sequence=True)
    assert fed(tokens) == [(0, 3, 7, True), (1, 5, 10, True), (1, 6, 11, True), (1, 7, 12, True)]
    assert tokens.rows == [(1, 5), (1, 6), (1, 7), (0, 3)]
    assert tokens.row_order is not None
    assert tokens.row_order.tolist() == [3, 0, 1, 2]


@pytest.mark.parametrize("part", [slice(0, 9), slice(3, 6)])
def test_the_c_struct_shows_what_was_filled_in(part: slice) -> None:
    tokens = lay_out(PLAN, by_sequence=True)
    batch = LlamaBatch(FakeApi, 16)
    batch.fill(tokens, slice(0, 9))
    num_rows = batch.fill(tokens, part)
    c = batch.struct
    size = part.stop - part.start
    assert c.n_tokens == size
    assert all(c.n_seq_id[i] == 1 for i in range(16))
    seen = [(c.seq_id[i][0], c.pos[i], c.token[i], bool(c.logits[i])) for i in range(size)]
    assert seen == fed(tokens)[part]
    assert num_rows == sum(wanted for *_, wanted in seen)
