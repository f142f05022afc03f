"""Whether an answer gives away what only a caller with a key may have."""

from collections.abc import Iterator

from tidegate.conformance.verdict import Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

SERVED = ("choices", "data", "id", "object", "models", "tokens")
"""Members of answers that are no refusals."""


def is_locked(exchange: Exchange) -> Iterator[Fault]:
    """Without a key nothing is served: 401, or any refusal or redirection that tells nothing. A 2xx to OPTIONS tells
    only which methods there are.
    """
    if exchange.status is None:
        yield Fault(f"no response: {exchange.ending.value} {exchange.detail}".rstrip())
    elif exchange.status >= 500:
        yield Fault(f"status {exchange.status}, expected a refusal")
    elif exchange.status < 300 and exchange.method != "OPTIONS":
        yield Fault(f"status {exchange.status} to {exchange.method} without a key")
    for name in SERVED:
        if at(exchange.json, name):
            yield Fault(f"the answer without a key holds {name!r}")
            return


def repeats_no_key(exchange: Exchange) -> Iterator[Fault]:
    """The key that was sent, which holds the ask's marker, stands nowhere in the answer."""
    marker = exchange.marker.encode()
    if any(marker in piece.data for piece in exchange.pieces) or marker in exchange.body:
        yield Fault("the answer repeats the key that was sent")


def are_told_alike(*exchanges: Exchange) -> Iterator[Fault]:
    """All are refused with one status, type and code: an answer tells nobody what is wrong with a key."""
    told = [(e.status, at(e.json, "error", "type"), at(e.json, "error", "code")) for e in exchanges]
    for exchange, mine in zip(exchanges[1:], told[1:], strict=True):
        if mine != told[0]:
            yield Fault(f"{mine}, but {told[0]} for {exchanges[0].ask}", ask=exchange.ask)
