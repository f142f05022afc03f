"""What the admin listener answers, and what a drain does."""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from tidegate.conformance.checks.whole_answer import is_whole_answer
from tidegate.conformance.verdict import CannotTell, Fault, Refused
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


def lists_those_running(*exchanges: Exchange) -> Iterator[Fault]:
    """The last exchange, a list of live requests, has at least as many entries as requests ran while it was made, and
    those are all the others. Raises CannotTell where one of them had ended before.
    """
    *running, listed = exchanges
    if any(run.sent_at_s + run.duration_s < listed.sent_at_s + listed.duration_s for run in running):
        raise CannotTell("a request that was to be listed had ended before")
    for fault in lists_requests(listed, at_least=len(running)):
        yield replace(fault, ask=listed.ask)


def abort_path(listed: Exchange) -> str:
    """Returns the path that aborts the listed request. Raises CannotTell where not just one is listed."""
    data = at(listed.json, "data")
    ids = [at(entry, "id") for entry in data] if isinstance(data, list) else []
    if len(ids) != 1 or not isinstance(ids[0], str):
        raise CannotTell(f"{len(ids)} live requests are listed, one was sent")
    return f"/admin/v1/requests/{quote(ids[0], safe='')}/abort"


def has_aborted(exchange: Exchange) -> Iterator[Fault]:
    """The act is told to be done. Raises CannotTell where the request had come to its end before."""
    if exchange.status == 404:
        raise CannotTell("the request had ended before it could be aborted")
    if exchange.status != 200:
        yield Fault(f"status {exchange.status}, expected 200")


def lists_none(exchange: Exchange) -> Iterator[Fault]:
    """No live request is listed."""
    if at(exchange.json, "data") != []:
        yield Fault(f"live requests are listed: {str(at(exchange.json, 'data'))[:200]}")


def allows(exchange: Exchange, *, method: str) -> Iterator[Fault]:
    """405 names the method that is allowed."""
    if method not in exchange.headers.get("allow", "").replace(" ", "").split(","):
        yield Fault(f"Allow is {exchange.headers.get('allow')!r}, expected {method}")


def finishes_in_a_drain(drain: Exchange, exchange: Exchange, *, timeout_s: float) -> Iterator[Fault]:
    """A whole answer, in spite of the drain. Never a fault where it was not done when the drain's time was over."""
    faults = list(is_whole_answer(exchange))
    if faults and exchange.sent_at_s + exchange.duration_s >= drain.sent_at_s + timeout_s:
        raise CannotTell(f"it was not done within the {timeout_s:g} s that the drain was given: {faults[0].says}")
    yield from faults


def has_begun_drain(exchange: Exchange) -> Iterator[Fault]:
    """The drain is told to have begun: status `draining`."""
    if exchange.status not in (200, 202):
        yield Fault(f"status {exchange.status} for the drain")
    elif at(exchange.json, "status") != "draining":
        yield Fault(f"status is {at(exchange.json, 'status')!r}, expected 'draining'")
