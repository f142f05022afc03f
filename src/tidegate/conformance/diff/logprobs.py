"""Log-probabilities of two answers to one question: compared token by token, up to where the texts part."""

from collections.abc import Iterator, Sequence
from typing import Any

from tidegate.conformance.diff.difference import Meaning
from tidegate.conformance.diff.facts import Facts, TokenFact

Found = tuple[str, Any, Any, Meaning, str]
MIN_LOGPROB = -9000.0
"""Below: a stand-in for minus infinity, or for "not among those looked at"."""


def compare_logprobs(old: Sequence[Facts], new: Sequence[Facts], tolerance: float) -> Iterator[Found]:
    """Yields place, old and new value, meaning and reason. Compares the nearest pair of runs."""
    for index in sorted({index for facts in old for index in facts.tokens}):
        pairs = [
            list(_compare(index, before.tokens[index], after.tokens[index], tolerance, is_sampled=before.is_sampled))
            for before in old
            for after in new
            if index in before.tokens and index in after.tokens
        ]
        if pairs:
            yield from min(pairs, key=lambda found: (sum(row[3] is Meaning.REGRESSION for row in found), len(found)))


def _compare(
    index: int, old: Sequence[TokenFact], new: Sequence[TokenFact], tolerance: float, *, is_sampled: bool
) -> Iterator[Found]:
    worst: tuple[float, int] | None = None
    for position, (before, after) in enumerate(zip(old, new, strict=False)):
        if before.token != after.token:
            yield from () if is_sampled else (_parting(index, position, before, after, tolerance),)
            break
        distance = _distance(before.logprob, after.logprob)
        if distance is not None and (worst is None or distance > worst[0]):
            worst = (distance, position)
    if worst is None or worst[0] == 0.0:
        return
    distance, position = worst
    where = f"choices[{index}] token {position}"
    shown = old[position].logprob, new[position].logprob
    if distance > tolerance:
        yield where, *shown, Meaning.REGRESSION, f"apart by {distance:.3g}, more than {tolerance:g}"
    else:
        yield where, *shown, Meaning.VARIATION, f"apart by at most {distance:.3g}"


def _parting(index: int, position: int, old: TokenFact, new: TokenFact, tolerance: float) -> Found:
    """The first token at which greedy texts part. An advantage of up to two tolerances, one for each of the two tokens,
    is a near tie.
    """
    where = f"choices[{index}] token {position} parts"
    if old.logprob is None or old.runner_up is None:
        return where, old.token, new.token, Meaning.VARIATION, "the texts part, and alternatives are not known"
    advantage = old.logprob - old.runner_up
    if advantage > 2 * tolerance:
        because = f"the old server preferred its token by {advantage:.3g}, no near tie"
        return where, old.token, new.token, Meaning.REGRESSION, because
    return where, old.token, new.token, Meaning.VARIATION, f"a near tie: {advantage:.3g} apart"


def _distance(old: float | None, new: float | None) -> float | None:
    if old is None or new is None:
        return None
    if old < MIN_LOGPROB or new < MIN_LOGPROB:
        return 0.0 if old == new else None
    return abs(old - new)
