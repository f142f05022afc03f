"""Masks of grammars for the rows of one step.

One buffer, allocated once, has a row for each place where a step may choose a token: sequences times (1 + draft
tokens). `fill` brings the machines to where their sequences are and fills the rows of all constrained sequences in one
call, and only those; `forbid` lays a mask over one row of logits. Rows are given out anew in each step, so a sequence
that ends, is preempted or is held leaves none behind. Does not know sampling.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.core.backend import Float32Array
from tidegate.core.chooser import ChooseRow
from tidegate.core.constraint import Constraint
from tidegate.core.grammar_desk import GrammarOrder
from tidegate.core.sampler.weights import IndexArray
from tidegate.errors import InternalError
from tidegate.grammar.mask_buffer import make_mask_words
from tidegate.grammar.matcher import GrammarCompiler, MaskRow
from tidegate.inference.request import InferenceRequest


@dataclass(frozen=True, slots=True)
class GrammarShape:
    """The most sequences of a step, the most draft tokens of each, the tokens there are, those that end a text."""

    max_sequences: int
    max_draft_tokens: int
    vocab_size: int
    eos_token_ids: tuple[int, ...]


@dataclass(slots=True)
class _Row:
    """One sequence's part in a step. Masks stand from `first_row` on, for the places from `num_free` on."""

    constraint: Constraint
    ignores_eos: bool
    first_row: int = 0
    num_free: int = 0
    num_legal: int = 0


class GrammarRows:
    """The constraints of open sequences, by key, and their masks."""

    def __init__(self, compiler: GrammarCompiler, shape: GrammarShape) -> None:
        """Raises ValueError when the compiler cannot write masks of this shape."""
        self._compiler = compiler
        self._vocab_size = shape.vocab_size
        self._places = 1 + shape.max_draft_tokens
        self._end_ids = frozenset(shape.eos_token_ids)
        self._end_array: IndexArray = np.array(shape.eos_token_ids, dtype=np.int64)
        self._words = make_mask_words(shape.max_sequences, shape.max_draft_tokens, shape.vocab_size)
        self._rows: dict[int, _Row] = {}
        compiler.register(self._words)

    def __len__(self) -> int:
        """Constrained sequences that are open."""
        return len(self._rows)

    def __contains__(self, key: int) -> bool:
        return key in self._rows

    def open(self, key: int, request: InferenceRequest, order: GrammarOrder) -> None:
        """Takes one choice of a request that has a grammar."""
        if request.grammar is not None:
            constraint = Constraint(request.grammar, order, self._end_ids)
            self._rows[key] = _Row(constraint, request.stop.ignore_eos)

    def close(self, key: int) -> None:
        """Forgets a sequence. Idempotent."""
        self._rows.pop(key, None)

    def is_ready(self, key: int) -> bool:
        """Whether a token could be chosen for this sequence now. True for those without a grammar."""
        row = self._rows.get(key)
        return row is None or row.constraint.is_ready

    def fill(self, rows: Sequence[ChooseRow]) -> None:
        """Prepares the masks of a step: takes back what the scheduler took back, and fills what is constrained."""
        entries: list[MaskRow] = []
        filled: list[_Row] = []
        for index, choose in enumerate(rows):
            row = self._rows.get(choose.key)
            if row is None:
                continue
            row.constraint.rewind(choose.num_generated)
            if row.constraint.fault is None and not row.constraint.is_complete:
                row.first_row = index * self._places
                entry = _plan(row, choose.draft_ids)
                if entry is not None:
                    entries.append(entry)
                    filled.append(row)
        if entries:
            for row, num_legal in zip(filled, self._compiler.fill(entries), strict=True):
                row.num_legal = row.num_free + num_legal

    def legal_drafts(self, key: int, num_generated: int, draft_ids: Sequence[int]) -> int:
        """Returns how many of these guesses a sequence's grammar allows; all, where it has none."""
        row = self._rows.get(key)
        if row is None:
            return len(draft_ids)
        constraint = row.constraint
        constraint.rewind(num_generated)
        begin = constraint.num_free(draft_ids)
        num_free = constraint.first_end(draft_ids[:begin])
        if begin is None or num_free < begin:
            return num_free
        machine = constraint.machine
        return max(0, begin - 1) if machine is None else begin + machine.legal_prefix(draft_ids[begin:])

    def fault(self, key: int) -> str | None:
        """Why a constrained sequence must fail, or None."""
        return self._rows[key].constraint.fault

    def is_complete(self, key: int) -> bool:
        """Whether a constrained sequence is at its end: no token may follow."""
        return self._rows[key].constraint.is_complete

    def num_legal(self, key: int) -> int:
        """How many of the step's draft tokens the grammar allows; `forbid` knows the places up to and with this."""
        return self._rows[key].num_legal

    def allows(self, key: int, token_id: int, place: int = 0) -> bool:
        """Whether this token may come behind the first `place` draft tokens."""
        row = self._rows[key]
        if token_id in self._end_ids and (row.ignores_eos or place < row.num_free):
            return False
        if place < row.num_free:
            return True
        word = self._words[row.first_row + place, token_id >> 5]
        return bool(int(word) >> (token_id & 31) & 1)

    def forbid(self, key: int, values: Float32Array, place: int = 0) -> None:
        """Lowers to minus infinity what may not come behind the first `place` draft tokens. `values`: shape [vocab]."""
        row = self._rows[key]
        if place >= row.num_free:
            bits = np.unpackbits(self._words[row.first_row + place].view(np.uint8), bitorder="little")
            np.copyto(values, -np.inf, where=bits[: self._vocab_size] == 0)
        if row.ignores_eos or place < row.num_free:
            values[self._end_array] = -np.inf

    def record(self, key: int, token_id: int) -> None:
        """Moves a sequence's machine on by a token that was chosen; then ask `fault` and `is_complete`."""
        self._rows[key].constraint.record(token_id)


def _plan(row: _Row, draft_ids: Sequence[int]) -> MaskRow | None:
    """Sets what is known before masks are filled; returns what is to be filled, or None."""
    constraint = row.constraint
    begin = constraint.num_free(draft_ids)
    row.num_free = len(draft_ids) + 1 if begin is None else begin
    row.num_legal = constraint.first_end(draft_ids[: row.num_free])
    if begin is None or row.num_legal < begin:
        return None
    machine = constraint.machine
    if machine is None and begin == 0:
        raise InternalError("a constrained token is due before its grammar is compiled")
    if machine is None:
        row.num_legal = begin - 1
        return None
    row.num_legal = len(draft_ids)
    return MaskRow(machine, row.first_row + begin, draft_ids[begin:])
