"""Whether a server stays in order, whatever it is sent."""

from collections.abc import Iterator

from tidegate.conformance.verdict import Fault
from tidegate.conformance.wire.exchange import Ending, Exchange


def is_answered(exchange: Exchange, *, besides: tuple[int, ...] = ()) -> Iterator[Fault]:
    """An answer came, whole, and its status does not blame the server; statuses of `besides` are right too."""
    if exchange.status is None:
        yield Fault(f"no response: {exchange.ending.value} {exchange.detail}".rstrip())
    elif exchange.status >= 500 and exchange.status not in besides:
        yield Fault(f"status {exchange.status}, which blames the server for what it was sent")
    elif exchange.ending not in (Ending.WHOLE, Ending.LEFT):
        yield Fault(f"{exchange.ending.value} {exchange.detail}".rstrip())


def is_answered_or_closed(exchange: Exchange) -> Iterator[Fault]:
    """As `is_answered`; a connection that is closed at once is an answer to what is not HTTP."""
    if exchange.status is None and exchange.ending in (Ending.CUT, Ending.RESET):
        return
    yield from is_answered(exchange, besides=(501, 505))


def is_turned_away(exchange: Exchange) -> Iterator[Fault]:
    """A 4xx or 501, or the connection was closed at once: what cannot be framed is not served."""
    if exchange.status is None and exchange.ending in (Ending.CUT, Ending.RESET):
        return
    if exchange.status is None or not (400 <= exchange.status < 500 or exchange.status == 501):
        told = exchange.ending.value if exchange.status is None else f"status {exchange.status}"
        yield Fault(f"{told}, expected a 400 or a closed connection")


def is_like(first: Exchange, second: Exchange) -> Iterator[Fault]:
    """Both have the same status: what differs between the requests must not matter."""
    if first.status != second.status:
        yield Fault(f"status {second.status}, but {first.status} for the same request sent plainly", ask=second.ask)
