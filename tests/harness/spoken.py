"""Answers as tokens with their log-probabilities, and what may differ between two runs of one request.

llama.cpp's results depend on which tokens share a forward pass: sums are taken in another order, and rounding differs.
So two runs in other company may part, but only where the model was as good as undecided, and only after values that
agree up to rounding.
"""

from dataclasses import dataclass
from typing import Any

ROUNDING = 0.3
"""The largest difference of one token's log-probability between two batches."""
NEAR_TIE = 2 * ROUNDING
"""Two candidates closer than that may change places."""


@dataclass(frozen=True, slots=True)
class Word:
    """One generated token: its bytes, its log-probability, and the likeliest alternatives."""

    raw: bytes
    logprob: float
    top: dict[bytes, float]


def spoken(entries: list[dict[str, Any]]) -> list[Word]:
    """Returns the tokens of a chat choice, from the entries of its `logprobs`."""
    return [
        Word(
            bytes(entry["bytes"]),
            entry["logprob"],
            {bytes(top["bytes"]): top["logprob"] for top in entry["top_logprobs"]},
        )
        for entry in entries
    ]


def check_same_up_to_ties(one: list[Word], other: list[Word]) -> bool:
    """Returns whether two answers are equal; raises AssertionError when they part where rounding cannot explain it."""
    for mine, theirs in zip(one, other, strict=False):
        if mine.raw != theirs.raw:
            assert theirs.raw in mine.top, f"{theirs.raw!r} is not among the likeliest: {mine}"
            assert mine.raw in theirs.top, f"{mine.raw!r} is not among the likeliest: {theirs}"
            assert mine.logprob - mine.top[theirs.raw] < NEAR_TIE, (mine, theirs)
            assert theirs.logprob - theirs.top[mine.raw] < NEAR_TIE, (mine, theirs)
            return False
        assert abs(mine.logprob - theirs.logprob) < ROUNDING, (mine, theirs)
    assert len(one) == len(other)
    return True
