"""What one step does: slices to prefill, rows to decode with their drafts, memory to move."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class KvShare:
    """Sequence `dst` begins with the first `length` tokens of `src`. `dst` holds nothing before."""

    src: int
    dst: int
    length: int


@dataclass(frozen=True, slots=True)
class KvTruncate:
    """Sequence keeps its first `length` tokens."""

    seq_id: int
    length: int


@dataclass(frozen=True, slots=True)
class KvDrop:
    """Sequence holds nothing any more; its id may be given out again."""

    seq_id: int


KvMove = KvShare | KvTruncate | KvDrop


@dataclass(frozen=True, slots=True)
class PrefillSlice:
    """Tokens of one prompt that enter the cache in this step, from position `start`.

    Logits are wanted at the last token when `wants_last`; at every token but the first `num_unwanted` when `wants_all`.
    """

    seq_id: int
    start: int
    token_ids: "memoryview[int] | list[int]"
    wants_last: bool
    wants_all: bool = False
    num_unwanted: int = 0


@dataclass(frozen=True, slots=True)
class DecodeRow:
    """One sequence's newest token, at `position`, and the tokens guessed to follow it; logits are wanted for each."""

    seq_id: int
    position: int
    token_id: int
    draft_ids: Sequence[int] = ()

    @property
    def num_tokens(self) -> int:
        return 1 + len(self.draft_ids)


@dataclass(slots=True)
class StepPlan:
    """One step. Moves are carried out first, in order; then all tokens enter the cache as one batch."""

    moves: list[KvMove] = field(default_factory=list)
    prefill: list[PrefillSlice] = field(default_factory=list)
    decode: list[DecodeRow] = field(default_factory=list)

    @property
    def num_tokens(self) -> int:
        return self.num_decode_tokens + sum(len(part.token_ids) for part in self.prefill)

    @property
    def num_decode_tokens(self) -> int:
        """Tokens of decode rows, their drafts included."""
        return sum(row.num_tokens for row in self.decode)
