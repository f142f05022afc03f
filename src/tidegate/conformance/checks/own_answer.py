"""Answers of requests that run at the same time: each is the answer to its own request, and to no other's."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tidegate.conformance.answer import read_answer
from tidegate.conformance.checks.whole_answer import is_answered_or_refused
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at


def _answered(exchanges: tuple[Exchange, ...]) -> list[Exchange]:
    return [exchange for exchange in exchanges if exchange.status == 200]


def _told(exchange: Exchange) -> str:
    return "".join(choice.text for choice in read_answer(exchange).choices.values())


def has_no_foreign_marker(exchanges: tuple[Exchange, ...]) -> Iterator[Fault]:
    """No answer holds a marker of another request: no model can guess one."""
    for exchange in exchanges:
        for other in exchanges:
            if other.marker and other.copy != exchange.copy and other.marker.encode() in exchange.body:
                yield Fault(f"holds {other.marker!r}, which stands in request {other.copy} only", copy=exchange.copy)


def has_own_marker(exchanges: tuple[Exchange, ...]) -> Iterator[Fault]:
    """Each answer holds its own request's marker, as its request makes sure that it must."""
    for exchange in exchanges:
        for fault in is_answered_or_refused(exchange):
            yield Fault(fault.says, copy=exchange.copy)
    answered = _answered(exchanges)
    if len(answered) < 2:
        raise CannotTell(f"{len(answered)} of {len(exchanges)} requests were answered")
    if any(
        read_answer(exchange).choice().finish_reason == "length" and "{" in _told(exchange) for exchange in answered
    ):
        raise CannotTell("the token limit cut an answer off")
    if not any(exchange.marker in _told(other) for exchange in answered for other in answered):
        raise CannotTell("no answer holds any of the words that were asked for: nothing made sure of them")
    for exchange in answered:
        if exchange.marker not in _told(exchange):
            yield Fault(f"lacks {exchange.marker!r}: {_told(exchange)[:60]!r}", copy=exchange.copy)


def has_own_copy(exchanges: tuple[Exchange, ...], *, repeat: int) -> Iterator[Fault]:
    """Each text is the digit of its copy, `repeat` times."""
    for exchange in exchanges:
        if (told := _told(exchange)) != str(exchange.copy) * repeat:
            yield Fault(f"{told[:60]!r} is not {repeat} times {exchange.copy}", copy=exchange.copy)


def have_own_ids(exchanges: tuple[Exchange, ...]) -> Iterator[Fault]:
    """All completion ids differ, and so do all `X-Request-Id` where the server sends them."""
    answered = _answered(exchanges)
    if len(answered) < 2:
        raise CannotTell(f"{len(answered)} of {len(exchanges)} requests were answered")
    heads = [exchange.chunks[0] if exchange.chunks else exchange.json for exchange in answered]
    for what, values in (
        ("id", [at(head, "id") for head in heads]),
        ("X-Request-Id", [exchange.headers.get("x-request-id") for exchange in answered]),
    ):
        counts = Counter(value for value in values if isinstance(value, str) and value)
        for value, count in counts.items():
            if count > 1:
                yield Fault(f"{count} answers have the {what} {value!r}")
        if what == "id" and MISSING in values:
            yield Fault("an answer has no id")


def keep_one_id(exchange: Exchange) -> Iterator[Fault]:
    """All chunks of a stream have the id of its first."""
    ids = {at(chunk, "id") for chunk in exchange.chunks if isinstance(at(chunk, "id"), str)}
    if len(ids) > 1:
        yield Fault(f"chunks of {len(ids)} ids in one stream: {sorted(ids)[:3]}")


def echoes_request_id(exchange: Exchange, *, value: str) -> Iterator[Fault]:
    """`X-Request-Id` is the one that was sent."""
    if exchange.headers.get("x-request-id") != value:
        yield Fault(f"X-Request-Id is {exchange.headers.get('x-request-id')!r}, sent was {value!r}")


def is_json_of(exchange: Exchange, *, name: str) -> Iterator[Fault]:
    """The text is a JSON object with the member `name`. Raises CannotTell where the answer was cut off by its token
    limit or is no JSON at all: that the schema has no effect is another case's matter.
    """
    answer = read_answer(exchange)
    if answer.choice().finish_reason == "length":
        raise CannotTell("the token limit cut the JSON off")
    try:
        value: Any = json.loads(answer.text)
    except ValueError:
        raise CannotTell(f"the schema has no effect: {answer.text[:60]!r}") from None
    if at(value, name) is MISSING:
        yield Fault(f"the text is no JSON object with {name!r}: {answer.text[:60]!r}")


def is_unmoved(alone: Exchange, beside: Exchange, other: Exchange) -> Iterator[Fault]:
    """An answer beside another request is what it was alone, or at least not what that one's parameters make of it.

    A model may waver when others run beside it, and so a difference alone is no fault: an answer that has become the
    other's, or that ends where the other's parameters end it, is one.
    """
    texts = [_told(exchange) for exchange in (alone, beside, other)]
    ends = [read_answer(exchange).choice().finish_reason for exchange in (alone, beside, other)]
    if texts[0] == texts[2]:
        raise CannotTell("the other request's parameters change nothing: both get the same text")
    if (texts[1], ends[1]) == (texts[0], ends[0]):
        return
    if texts[1] == texts[2] or (texts[0].startswith(texts[1]) and ends[1] != ends[0]):
        yield Fault(
            f"{texts[1][:60]!r} ({ends[1]}), as the other request's parameters have it; alone {texts[0][:60]!r} "
            f"({ends[0]})",
            ask=beside.ask,
        )
    else:
        raise CannotTell("the model does not repeat itself when others run")


def keeps_its_budget(exchange: Exchange, *, max_tokens: int) -> Iterator[Fault]:
    """Not more tokens than the request allows; all of them where it ends with `length`."""
    answer = read_answer(exchange)
    count = at(answer.usage, "completion_tokens")
    if not isinstance(count, int):
        raise CannotTell("the answer tells no completion_tokens")
    if count > max_tokens or (answer.choice().finish_reason == "length" and count != max_tokens):
        yield Fault(f"{count} tokens and {answer.choice().finish_reason}, max_tokens was {max_tokens}")
