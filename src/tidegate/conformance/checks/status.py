"""Whether an answer came, and with which status."""

from collections.abc import Iterator

from tidegate.conformance.verdict import Fault
from tidegate.conformance.wire.exchange import Ending, Exchange


def has_status(exchange: Exchange, *, allowed: tuple[int, ...]) -> Iterator[Fault]:
    """The status is one of `allowed`, and the response ended as its framing promised."""
    if exchange.status is None:
        yield Fault(f"no response: {exchange.ending.value} {exchange.detail}".rstrip())
        return
    if exchange.status not in allowed:
        yield Fault(f"status {exchange.status}, expected {' or '.join(map(str, allowed))}")
    if exchange.ending not in (Ending.WHOLE, Ending.LEFT):
        yield Fault(f"{exchange.ending.value} {exchange.detail}".rstrip())
