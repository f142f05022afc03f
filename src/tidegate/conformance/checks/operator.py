"""What the admin listener answers, and what a drain does."""

from collections.abc import Iterator

from tidegate.conformance.verdict import Fault, Refused
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at
from tidegate.conformance.wire.metric_formats import read_load


def tells_load(exchange: Exchange) -> Iterator[Fault]:
    """The page is in the Prometheus text format and says what runs."""
    kind = exchange.headers.get("content-type", "")
    if not kind.startswith(("text/plain", "application/openmetrics-text")):
        yield Fault(f"Content-Type is {kind!r}")
    load = read_load(exchange.body.decode("utf-8", "replace"))
    if load is None or load.used is None or load.generated is None:
        yield Fault("the page does not tell running requests, used blocks and generated tokens")


def needs_own_credential(known: Exchange, without: Exchange, wrong: Exchange) -> Iterator[Fault]:
    """Where the admin listener has a credential, nothing is told without it or with another. Raises Refused where it
    has none.
    """
    if b"REDACTED" not in known.request:
        raise Refused("no admin credential was given: give --admin-token where there is one")
    if known.status != 200:
        yield Fault(f"status {known.status} with the credential", ask=known.ask)
    for exchange in (without, wrong):
        if exchange.status != 401:
            yield Fault(f"status {exchange.status}, expected 401", ask=exchange.ask)


def lists_requests(exchange: Exchange, *, at_least: int) -> Iterator[Fault]:
    """The list of live requests has at least so many entries."""
    data = at(exchange.json, "data")
    if not isinstance(data, list):
        yield Fault("the list of live requests has no `data`")
    elif len(data) < at_least:
        yield Fault(f"{len(data)} live requests are listed, expected {at_least} at least")


def lists_none(exchange: Exchange) -> Iterator[Fault]:
    """No live request is listed."""
    if at(exchange.json, "data") != []:
        yield Fault(f"live requests are listed: {str(at(exchange.json, 'data'))[:200]}")


def allows(exchange: Exchange, *, method: str) -> Iterator[Fault]:
    """405 names the method that is allowed."""
    if method not in exchange.headers.get("allow", "").replace(" ", "").split(","):
        yield Fault(f"Allow is {exchange.headers.get('allow')!r}, expected {method}")


def has_begun_drain(exchange: Exchange) -> Iterator[Fault]:
    """The drain is told to have begun: status `draining`."""
    if exchange.status not in (200, 202):
        yield Fault(f"status {exchange.status} for the drain")
    elif at(exchange.json, "status") != "draining":
        yield Fault(f"status is {at(exchange.json, 'status')!r}, expected 'draining'")
