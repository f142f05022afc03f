"""A step's tokens laid out for `llama_decode`, and where each wanted row of logits comes out.

llama.cpp splits a batch of the per-sequence layout into parts of consecutive, rising sequence ids: ids 0 1 2 3 in
this order are one pass over the weights, 0 2 1 3 are three. There the batch is sorted by sequence id; rows of logits
are put back into the plan's order afterwards, which costs a copy only where the two differ.

Sequences of other widths in one batch become passes of equal width: widths 1 and 3 are one token of each, then two of
the second. A pass over one token of a sequence uses other kernels than wider ones. `even` keeps clear of it: a filler
token behind each odd run makes all widths even, and so all their differences; it is cut off again afterwards.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.core.plan import StepPlan

Int32Array = npt.NDArray[np.int32]
Int8Array = npt.NDArray[np.int8]
IndexArray = npt.NDArray[np.intp]


@dataclass(slots=True)
class StepTokens:
    """A step as columns, in the order of decoding. `row_order[j]` is the plan's row of the j-th logits that come out.

    `row_order` is None where both orders are the same. `fillers` are the sequence ids and positions of fillers.
    """

    token_ids: Int32Array
    positions: Int32Array
    seq_ids: Int32Array
    wanted: Int8Array
    rows: list[tuple[int, int]]
    row_order: IndexArray | None
    fillers: list[tuple[int, int]]
    is_even: bool = False

    def parts(self, max_tokens: int, max_outputs: int) -> Iterator[slice]:
        """Yields consecutive slices, each of at most so many tokens and wanted rows."""
        size = len(self.token_ids)
        max_tokens -= max_tokens % 2 if self.is_even else 0
        if size <= max_tokens and len(self.rows) <= max_outputs:
            yield slice(0, size)
            return
        before = np.concatenate(([0], np.cumsum(self.wanted)))
        start = 0
        while start < size:
            last = int(np.searchsorted(before, before[start] + max_outputs, side="right")) - 1
            stop = min(size, start + max_tokens, last)
            stop -= (stop - start) % 2 if self.is_even else 0
            yield slice(start, stop)
            start = stop


def lay_out(plan: StepPlan, *, by_sequence: bool, even: bool = False) -> StepTokens:
    """Returns the plan's tokens as columns: in the plan's order, or sorted by sequence id."""
    tokens = _plan_order(plan)
    if even:
        tokens = _with_fillers(tokens)
    if not by_sequence or len(tokens.seq_ids) < 2 or bool((tokens.seq_ids[1:] >= tokens.seq_ids[:-1]).all()):
        return tokens
    order = np.argsort(tokens.seq_ids, kind="stable")
    wanted = tokens.wanted[order]
    plan_row = np.cumsum(tokens.wanted) - 1
    row_order = plan_row[order[wanted != 0]]
    return StepTokens(
        token_ids=tokens.token_ids[order],
        positions=tokens.positions[order],
        seq_ids=tokens.seq_ids[order],
        wanted=wanted,
        rows=tokens.rows,
        row_order=None if bool((row_order[1:] > row_order[:-1]).all()) else row_order,
        fillers=tokens.fillers,
        is_even=tokens.is_even,
    )


def _plan_order(plan: StepPlan) -> StepTokens:
    decode = plan.decode
    size = plan.num_tokens
    token_ids = np.empty(size, np.int32)
    positions = np.empty(size, np.int32)
    seq_ids = np.empty(size, np.int32)
    wanted = np.ones(size, np.int8)
    at = plan.num_decode_tokens
    token_ids[:at] = [token_id for row in decode for token_id in (row.token_id, *row.draft_ids)]
    rows = [(row.seq_id, row.position + index) for row in decode for index in range(row.num_tokens)]
    seq_ids[:at] = [seq_id for seq_id, _ in rows]
    positions[:at] = [position for _, position in rows]
    for part in plan.prefill:
        length = len(part.token_ids)
        end = at + length
        token_ids[at:end] = part.token_ids
        positions[at:end] = np.arange(part.start, part.start + length)
        seq_ids[at:end] = part.seq_id
        if part.wants_all:
            wanted[at : at + part.num_unwanted] = 0
            rows.extend((part.seq_id, part.start + i) for i in range(part.num_unwanted, length))
        else:
            wanted[at:end] = 0
            if part.wants_last and length:
                wanted[end - 1] = 1
                rows.append((part.seq_id, part.start + length - 1))
        at = end
    return StepTokens(token_ids, positions, seq_ids, wanted, rows, None, [])


def _with_fillers(tokens: StepTokens) -> StepTokens:
    """Adds a token behind the run of each sequence that is odd in length. Each has one run, of rising positions."""
    ids, counts = np.unique(tokens.seq_ids, return_counts=True)
    odd = ids[counts % 2 == 1]
    last = [int(np.flatnonzero(tokens.seq_ids == seq_id)[-1]) for seq_id in odd]
    ends = tokens.positions[last] + 1
    return StepTokens(
        token_ids=np.concatenate((tokens.token_ids, tokens.token_ids[last])),
        positions=np.concatenate((tokens.positions, ends)),
        seq_ids=np.concatenate((tokens.seq_ids, odd)),
        wanted=np.concatenate((tokens.wanted, np.zeros(len(last), np.int8))),
        rows=tokens.rows,
        row_order=None,
        fillers=list(zip(odd.tolist(), ends.tolist(), strict=True)),
        is_even=True,
    )


class LlamaBatch:
    """One `llama_batch` over memory of ours, filled again for each call.

    Its fields are numpy arrays, so that filling is a few copies. Each token belongs to exactly one sequence: the
    pointers to the ids never change.
    """

    def __init__(self, api: Any, capacity: int) -> None:  # noqa: ANN401 - untyped bindings
        self._token_ids = np.zeros(capacity, np.int32)
        self._positions = np.zeros(capacity, np.int32)
        self._seq_ids = np.zeros(capacity, np.int32)
        self._wanted = np.zeros(capacity, np.int8)
        self._num_seq_ids = np.ones(capacity, np.int32)
        first, stride = self._seq_ids.ctypes.data, self._seq_ids.itemsize
        self._seq_id_pointers = np.arange(first, first + capacity * stride, stride, dtype=np.uintp)
        int32_pointer = ctypes.POINTER(ctypes.c_int32)
        self.struct = api.llama_batch()
        self.struct.token = self._token_ids.ctypes.data_as(int32_pointer)
        self.struct.pos = self._positions.ctypes.data_as(int32_pointer)
        self.struct.n_seq_id = self._num_seq_ids.ctypes.data_as(int32_pointer)
        self.struct.seq_id = self._seq_id_pointers.ctypes.data_as(ctypes.POINTER(int32_pointer))
        self.struct.logits = self._wanted.ctypes.data_as(ctypes.POINTER(ctypes.c_int8))

    def fill(self, tokens: StepTokens, part: slice) -> int:
        """Copies one part of a step in; returns how many rows of logits it gives."""
        size = part.stop - part.start
        self._token_ids[:size] = tokens.token_ids[part]
        self._positions[:size] = tokens.positions[part]
        self._seq_ids[:size] = tokens.seq_ids[part]
        self._wanted[:size] = tokens.wanted[part]
        self.struct.n_tokens = size
        return int(np.count_nonzero(self._wanted[:size]))
