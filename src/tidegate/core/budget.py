"""What one step may hold, and how prefills and drafts share it. A budget lives for one step."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepLimits:
    """Bounds of a step beyond what the backend declares.

    `max_prefill_tokens` bounds the prefill of a step that also carries decode rows, so that a long prompt does not
    stall running streams. `max_scored_rows` bounds the prompt positions whose logits one step keeps.
    `max_draft_tokens` bounds the tokens guessed for one sequence in a step; 0 for no speculation. `has_prefix_cache`:
    whether what has been computed is kept for sequences that begin alike, where the backend can.
    """

    max_prefill_tokens: int = 256
    max_scored_rows: int = 128
    max_draft_tokens: int = 0
    has_prefix_cache: bool = True


@dataclass(slots=True)
class StepBudget:
    """Rows (sequences), tokens and scored prompt rows left in one step."""

    num_rows: int
    num_tokens: int
    num_scored_rows: int

    def take(self, num_tokens: int, *, num_scored_rows: int = 0) -> None:
        """Takes one row with its tokens. The caller has looked that they are there."""
        self.num_rows -= 1
        self.num_tokens -= num_tokens
        self.num_scored_rows -= num_scored_rows
        assert self.num_rows >= 0
        assert self.num_tokens >= 0
        assert self.num_scored_rows >= 0


def share_tokens(wanted: Sequence[int], num_tokens: int) -> list[int]:
    """Shares `num_tokens` among prefills in their order.

    The first is sure of half; the others take from the rest in order, and what they leave goes back to the first. So a
    short prompt passes a long one, and the long one still moves at half speed at least.
    """
    if not wanted:
        return []
    first = min(wanted[0], (num_tokens + 1) // 2)
    left = num_tokens - first
    shares = [first]
    for want in wanted[1:]:
        share = min(want, left)
        shares.append(share)
        left -= share
    shares[0] += min(wanted[0] - first, left)
    return shares


def share_evenly(wanted: Sequence[int], num_tokens: int) -> list[int]:
    """Shares `num_tokens` so that nobody gets less than another who got more than one above; the first get the rest."""
    shares = [0] * len(wanted)
    left = num_tokens
    hungry = [index for index, want in enumerate(wanted) if want > 0]
    while left > 0 and hungry:
        portion = max(1, left // len(hungry))
        for index in hungry:
            share = min(portion, wanted[index] - shares[index], left)
            shares[index] += share
            left -= share
        hungry = [index for index in hungry if shares[index] < wanted[index]]
    return shares
