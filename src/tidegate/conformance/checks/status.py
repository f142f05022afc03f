"""Whether an answer came, and with which status."""

from collections.abc import Iterator
from dataclasses import replace

from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Ending, Exchange


def has_same_status(first: Exchange, second: Exchange) -> Iterator[Fault]:
    """The second request is answered with the status of the first, and ends as its framing promised."""
    if first.status is None:
        raise CannotTell(f"no response to the first request: {first.ending.value} {first.detail}".rstrip())
    for fault in has_status(second, allowed=(first.status,)):
        yield replace(fault, ask=second.ask)


def has_status(exchange: Exchange, *, allowed: tuple[int, ...]) -> Iterator[Fault]:
    """The status is one of `allowed`, and the response ended as its framing promised."""
    if exchange.status is None:
        yield Fault(f"no response: {exchange.ending.value} {exchange.detail}".rstrip())
        return
    if exchange.status not in allowed:
        yield Fault(f"status {exchange.status}, expected {' or '.join(map(str, allowed))}")
    if exchange.ending not in (Ending.WHOLE, Ending.LEFT):
        yield Fault(f"{exchange.ending.value} {exchange.detail}".rstrip())
