"""Answers that must be the same, and what it means where they are not."""

from collections.abc import Iterator
from typing import Any

from tidegate.conformance.checks.generation import answer_of, usage_of
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange


def texts_of(exchange: Exchange) -> dict[int, tuple[str, str | None]]:
    """Returns text and finish_reason of each choice."""
    return {index: (choice.text, choice.finish_reason) for index, choice in answer_of(exchange).choices.items()}


def _difference(expected: str, found: str) -> str:
    place = next((i for i, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b), None)
    place = min(len(expected), len(found)) if place is None else place
    return f"from character {place} on {found[place : place + 40]!r} instead of {expected[place : place + 40]!r}"


def _differences(
    expected: dict[int, tuple[str, str | None]], found: dict[int, tuple[str, str | None]]
) -> Iterator[str]:
    if sorted(expected) != sorted(found):
        yield f"choices {sorted(found)} instead of {sorted(expected)}"
    for index in sorted(expected.keys() & found.keys()):
        (text, finish), (other, other_finish) = expected[index], found[index]
        if text != other:
            yield f"choice {index} differs {_difference(text, other)}"
        elif finish != other_finish:
            yield f"choice {index} finishes with {other_finish!r} instead of {finish!r}"


def has_same_answer(first: Exchange, *others: Exchange) -> Iterator[Fault]:
    """All answers say the same. For what a server promises to repeat."""
    expected = texts_of(first)
    for other in others:
        for difference in _differences(expected, texts_of(other)):
            yield Fault(difference, ask=other.ask, copy=other.copy)


def is_like_repeated(first: Exchange, second: Exchange, other: Exchange) -> Iterator[Fault]:
    """The third says what the first two say. Raises CannotTell where those already differ: then this server does not
    repeat itself, and a difference of the third shows nothing.
    """
    expected = texts_of(first)
    if expected != texts_of(second):
        raise CannotTell("the server answers the same greedy request in two ways")
    yield from has_same_answer(first, other)


def has_same_usage(whole: Exchange, streamed: Exchange) -> Iterator[Fault]:
    """Equal answers are counted equally: prompt, completion and total tokens."""
    if texts_of(whole) != texts_of(streamed):
        raise CannotTell("the two answers differ, so may their usage")
    expected, found = usage_of(whole), usage_of(streamed)
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        if expected[name] != found[name]:
            yield Fault(f"{name} is {found[name]} streamed and {expected[name]} whole", ask=streamed.ask)


def all_same(exchanges: tuple[Exchange, ...]) -> Iterator[Fault]:
    """All copies say the same."""
    yield from has_same_answer(*exchanges)


def has_some_pair(exchanges: tuple[Exchange, ...]) -> Iterator[Fault]:
    """At least two copies say the same: a seed that is honoured as well as a server can is honoured sometimes."""
    texts = [answer_of(exchange).text for exchange in exchanges]
    if len(set(texts)) == len(texts):
        yield Fault(f"the same seed {len(texts)} times gave {len(texts)} different answers: it has no effect")


def has_distinct(exchanges: tuple[Exchange, ...], *, member: str) -> Iterator[Fault]:
    """No two answers have the same value of `member`."""
    found: list[Any] = []
    for exchange in exchanges:
        answer_of(exchange)
        body = exchange.chunks[0] if exchange.is_stream else exchange.json
        value = body.get(member)
        if value in found:
            yield Fault(f"two answers have {member} {value!r}", copy=exchange.copy)
        found.append(value)
