"""Scores of pairs, rankings and classes: their form, and that they agree with each other."""

import math
from collections.abc import Iterator
from typing import Any

from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

_CLOSE = 0.02
"""Largest difference of two scores of one pair: servers compute in batches, and in half precision."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _list(exchange: Exchange, name: str) -> list[Any]:
    """Returns a member of the answer. Raises CannotTell where no answer came."""
    rows = at(exchange.json, name)
    if exchange.status != 200 or not isinstance(rows, list):
        raise CannotTell(f"no {name} came (status {exchange.status})")
    return rows


def _scores(exchange: Exchange) -> list[float]:
    scores = [at(row, "score") for row in _list(exchange, "data")]
    if not all(map(_is_number, scores)):
        raise CannotTell("an answer holds a score that is no number")
    return [float(score) for score in scores]


def has_scores(exchange: Exchange, *, count: int) -> Iterator[Fault]:
    """Status 200, object `list`, and `count` rows in order, each with object, index and a number from -1 to 1."""
    if exchange.status != 200:
        yield Fault(f"status {exchange.status}, expected 200: {exchange.body[:150].decode('utf-8', 'replace')}")
        return
    if at(exchange.json, "object") != "list":
        yield Fault(f"object is {at(exchange.json, 'object')!r}, expected 'list'")
    rows = at(exchange.json, "data")
    if not isinstance(rows, list) or len(rows) != count:
        yield Fault(f"data is {str(rows)[:100]}, expected {count} rows")
        return
    for position, row in enumerate(rows):
        if at(row, "index") != position or at(row, "object") != "score":
            yield Fault(f"data[{position}] has index {at(row, 'index')!r} and object {at(row, 'object')!r}")
        if not _is_number(score := at(row, "score")) or not -1 <= score <= 1:
            yield Fault(f"data[{position}].score is {score!r}, expected a number from -1 to 1")


def pairs_agree(both: Exchange, first: Exchange, second: Exchange) -> Iterator[Fault]:
    """Two pairs at once have the scores that they have alone."""
    together, alone = _scores(both), [*_scores(first), *_scores(second)]
    if len(together) != len(alone) or any(abs(a - b) > _CLOSE for a, b in zip(together, alone, strict=False)):
        yield Fault(f"scores are {together} together, {alone} alone")


def is_ranked(exchange: Exchange, *, count: int, num_documents: int) -> Iterator[Fault]:
    """Status 200, and `count` results, the most relevant first, each with its own document's index."""
    if exchange.status != 200:
        yield Fault(f"status {exchange.status}, expected 200: {exchange.body[:150].decode('utf-8', 'replace')}")
        return
    results = at(exchange.json, "results")
    if not isinstance(results, list) or len(results) != count:
        yield Fault(f"results are {str(results)[:100]}, expected {count}")
        return
    scores = [at(row, "relevance_score") for row in results]
    if not all(map(_is_number, scores)) or scores != sorted(scores, reverse=True):
        yield Fault(f"relevance_score goes {scores}, expected numbers that do not rise")
    indices = [at(row, "index") for row in results]
    if len({*map(str, indices)}) != count or any(index not in range(num_documents) for index in indices):
        yield Fault(f"indices are {indices}, expected different ones below {num_documents}")


def ranks_as_scored(ranking: Exchange, scored: Exchange) -> Iterator[Fault]:
    """Each document's relevance is the score of the query with it."""
    scores = _scores(scored)
    for row in _list(ranking, "results"):
        index, value = at(row, "index"), at(row, "relevance_score")
        if not isinstance(index, int) or index not in range(len(scores)) or not _is_number(value):
            raise CannotTell("a result has no index, or no number")
        if abs(scores[index] - value) > _CLOSE:
            yield Fault(f"document {index} has relevance {value}, and score {scores[index]}")


def returns_documents(exchange: Exchange, *, texts: tuple[str, ...]) -> Iterator[Fault]:
    """Each result holds the text of its document."""
    for position, row in enumerate(_list(exchange, "results")):
        index = at(row, "index")
        wanted = texts[index] if isinstance(index, int) and index in range(len(texts)) else None
        if at(row, "document", "text") != wanted:
            yield Fault(f"results[{position}].document is {str(at(row, 'document'))[:100]}, expected {wanted!r}")


def has_classes(exchange: Exchange, *, labels: tuple[str, ...], count: int) -> Iterator[Fault]:
    """Status 200, and `count` rows in order: probabilities that add up to 1, and the label with the greatest."""
    if exchange.status != 200:
        yield Fault(f"status {exchange.status}, expected 200: {exchange.body[:150].decode('utf-8', 'replace')}")
        return
    rows = at(exchange.json, "data")
    if not isinstance(rows, list) or [at(row, "index") for row in rows] != list(range(count)):
        yield Fault(f"data is {str(rows)[:100]}, expected {count} rows in order")
        return
    for position, row in enumerate(rows):
        probs = at(row, "probs")
        if not isinstance(probs, list) or len(probs) != len(labels) or not all(map(_is_number, probs)):
            yield Fault(f"data[{position}].probs are {str(probs)[:100]}, expected {len(labels)} numbers")
        elif not math.isclose(sum(probs), 1.0, abs_tol=1e-4) or min(probs) < 0:
            yield Fault(f"data[{position}].probs are {probs}, expected shares of 1")
        elif at(row, "label") != labels[probs.index(max(probs))]:
            yield Fault(f"data[{position}].label is {at(row, 'label')!r}, and its probs are {probs} of {labels}")


def tells_reading(exchange: Exchange) -> Iterator[Fault]:
    """`usage` has prompt_tokens above 0, and total_tokens, which is the same number."""
    usage = at(exchange.json, "usage")
    counts = [at(usage, name) for name in ("prompt_tokens", "total_tokens")]
    if any(type(count) is not int or count <= 0 for count in counts) or counts[0] != counts[1]:
        yield Fault(f"usage is {str(usage)[:150]}, expected two equal counts above 0")
