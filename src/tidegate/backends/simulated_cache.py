"""The simulated backend's memory: who holds which token, under the rules that a real cache has.

Decides whether a move or a write is legal. A token that several sequences share takes one cell, as in a real cache, so
that the scheduler's accounting of blocks is checked against cells really in use.
"""

from tidegate.core.backend import BackendError
from tidegate.core.plan import KvDrop, KvMove, KvShare, KvTruncate


class SimulatedCache:
    """Token histories by sequence id."""

    def __init__(self, *, num_seq_ids: int, max_model_len: int, num_cells: int) -> None:
        self._num_seq_ids = num_seq_ids
        self._max_model_len = max_model_len
        self._num_cells = num_cells
        self._tokens: dict[int, list[int]] = {}
        self._cells: dict[int, list[int]] = {}
        self._num_references: dict[int, int] = {}
        self._next_cell = 0

    @property
    def num_used_cells(self) -> int:
        return len(self._num_references)

    @property
    def seq_ids(self) -> tuple[int, ...]:
        """Sequences that hold at least one token."""
        return tuple(seq_id for seq_id, tokens in self._tokens.items() if tokens)

    def tokens_of(self, seq_id: int) -> list[int]:
        """Returns the history itself; the caller does not change it."""
        return self._tokens.get(seq_id, [])

    def apply(self, move: KvMove) -> None:
        """Raises BackendError when the move is illegal."""
        match move:
            case KvShare(src, dst, length):
                self._share(src, dst, length)
            case KvTruncate(seq_id, length):
                held = len(self.tokens_of(self._checked(seq_id)))
                if not 0 <= length <= held:
                    raise BackendError(f"sequence {seq_id} holds {held} tokens and cannot be cut to {length}")
                self._cut(seq_id, length)
            case KvDrop(seq_id):
                self._cut(self._checked(seq_id), 0)

    def write(self, seq_id: int, position: int, token_ids: "memoryview[int] | list[int]") -> None:
        """Adds tokens at the end of a history. Raises BackendError when `position` is not that end, or room is out."""
        held = len(self.tokens_of(self._checked(seq_id)))
        end = held + len(token_ids)
        if position != held:
            raise BackendError(f"sequence {seq_id} holds {held} tokens; a token at position {position} leaves a gap")
        if end > self._max_model_len:
            raise BackendError(f"sequence {seq_id} would hold {end} tokens, the context is {self._max_model_len}")
        if self.num_used_cells + len(token_ids) > self._num_cells:
            raise BackendError(f"no room for {len(token_ids)} tokens: {self.num_used_cells} of {self._num_cells} used")
        cells = range(self._next_cell, self._next_cell + len(token_ids))
        self._next_cell += len(token_ids)
        self._num_references.update(dict.fromkeys(cells, 1))
        self._cells.setdefault(seq_id, []).extend(cells)
        self._tokens.setdefault(seq_id, []).extend(token_ids)

    def _share(self, src: int, dst: int, length: int) -> None:
        held = len(self.tokens_of(self._checked(src)))
        if self.tokens_of(self._checked(dst)):
            raise BackendError(f"sequence {dst} is not empty and cannot take tokens of sequence {src}")
        if not 0 < length <= held:
            raise BackendError(f"sequence {src} holds {held} tokens and cannot share {length}")
        self._tokens[dst] = self._tokens[src][:length]
        self._cells[dst] = self._cells[src][:length]
        for cell in self._cells[dst]:
            self._num_references[cell] += 1

    def _cut(self, seq_id: int, length: int) -> None:
        for cell in self._cells.get(seq_id, [])[length:]:
            self._num_references[cell] -= 1
            if self._num_references[cell] == 0:
                del self._num_references[cell]
        if length:
            del self._tokens[seq_id][length:]
            del self._cells[seq_id][length:]
        else:
            self._tokens.pop(seq_id, None)
            self._cells.pop(seq_id, None)

    def _checked(self, seq_id: int) -> int:
        if not 0 <= seq_id < self._num_seq_ids:
            raise BackendError(f"sequence id {seq_id} is not below {self._num_seq_ids}")
        return seq_id
