"""How much of an answer came, against what was asked for."""

from collections.abc import Iterator
from typing import Any

from tidegate.conformance.answer import read_answer
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at


def is_within(exchange: Exchange, *, num_tokens: int) -> Iterator[Fault]:
    """At most so many tokens were generated, and an answer that has so many says `length`. An answer without usage
    allows no verdict.
    """
    answer = read_answer(exchange)
    counted = at(answer.usage, "completion_tokens")
    if type(counted) is not int:
        raise CannotTell("the answer tells no usage")
    if counted > num_tokens:
        yield Fault(f"{counted} tokens, expected at most {num_tokens}")
    elif counted == num_tokens and answer.choice().finish_reason not in ("length", "stop"):
        yield Fault(f"finish_reason is {answer.choice().finish_reason!r} after all {num_tokens} tokens")


def speaks(exchange: Exchange) -> Iterator[Fault]:
    """Audio was asked for: the message holds it, unless the request was refused."""
    if exchange.status == 200 and not isinstance(at(exchange.json, "choices", 0, "message", "audio"), dict):
        yield Fault("audio was asked for, and the answer holds none; nothing says so")


def tells_limit(
    exchange: Exchange, *, name: str, value: int | None = None, actual: int | None = None
) -> Iterator[Fault]:
    """`error.limit` names the limit, its value, what the request has, and whose limit it is; exactly `value` and
    `actual` where they are given.
    """
    limit = at(exchange.json, "error", "limit")
    if not isinstance(limit, dict):
        yield Fault(f"error.limit is {_spell(limit)}, expected an object")
        return
    if limit.get("name") != name:
        yield Fault(f"error.limit.name is {limit.get('name')!r}, expected {name!r}")
    for member, expected in (("value", value), ("actual", actual)):
        found = limit.get(member)
        if type(found) is not int or (expected is not None and found != expected):
            yield Fault(f"error.limit.{member} is {found!r}, expected {'a number' if expected is None else expected}")
    if _is_number(limit.get("value")) and _is_number(limit.get("actual")) and limit["actual"] <= limit["value"]:
        yield Fault(f"error.limit.actual {limit['actual']} is within the limit {limit['value']}")
    if limit.get("scope") not in ("request", "key", "server"):
        yield Fault(f"error.limit.scope is {limit.get('scope')!r}")


def tells_published_limit(
    contract: Exchange, exchange: Exchange, *, name: str, extra: int | None = 1
) -> Iterator[Fault]:
    """`error.limit` says the value that /v1/contract publishes, and `extra` more than that as the actual one; any
    actual value where `extra` is None.
    """
    value = at(contract.json, "limits", name, "value")
    if type(value) is not int:
        raise CannotTell(f"/v1/contract publishes no limit {name}")
    yield from tells_limit(exchange, name=name, value=value, actual=None if extra is None else value + extra)


def passes_limit(exchange: Exchange, *, name: str) -> Iterator[Fault]:
    """What was sent is not refused for this limit: it is answered, or stopped by a later one."""
    if exchange.status is None or exchange.status >= 500:
        yield Fault(f"status {exchange.status}, expected an answer")
    refused_for = at(exchange.json, "error", "limit", "name")
    if refused_for == name:
        yield Fault(f"what stands at the limit {name} is refused for it")
    elif exchange.status is not None and exchange.status >= 400 and not isinstance(refused_for, str):
        yield Fault(f"status {exchange.status} {at(exchange.json, 'error', 'code')!r} at the limit {name}")


def says_text(exchange: Exchange, *, text: str) -> Iterator[Fault]:
    """`error.message` holds the text."""
    message = at(exchange.json, "error", "message")
    if not isinstance(message, str) or text not in message:
        yield Fault(f"error.message is {_spell(message)}, expected {text!r} in it")


def _is_number(value: Any) -> bool:
    return type(value) is int


def _spell(value: Any) -> str:
    return "missing" if value is MISSING else repr(value)[:200]
