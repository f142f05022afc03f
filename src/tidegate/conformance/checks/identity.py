"""What an answer says of itself: when it was made, by which model, of which revision."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

from tidegate.conformance.checks.generation import answer_of
from tidegate.conformance.verdict import Fault
from tidegate.conformance.wire.exchange import Exchange

MAX_CLOCK_DRIFT_S = 600
"""Between a server's Date header and its `created`: an answer may take minutes."""
EARLIEST = 1_600_000_000
LATEST = 32_503_680_000
"""September 2020 and the year 3000: no server that we judge answered outside them, and milliseconds are beyond."""


def _bodies(exchange: Exchange) -> list[tuple[int | None, dict[str, Any]]]:
    answer_of(exchange)
    return [(event, body) for event, body in exchange.numbered_bodies if isinstance(body, dict)]


def was_created_now(exchange: Exchange) -> Iterator[Fault]:
    """`created` is in seconds; near the Date header, where there is one."""
    created = _bodies(exchange)[0][1].get("created")
    if type(created) is not int or not EARLIEST <= created <= LATEST:
        yield Fault(f"created is {created!r}, which are no seconds since 1970 of this time")
        return
    try:
        date_s = parsedate_to_datetime(exchange.headers.get("date", "")).timestamp()
    except (ValueError, TypeError):
        return
    if abs(date_s - created) > MAX_CLOCK_DRIFT_S:
        yield Fault(f"created is {created}, the answer's Date header says {date_s:.0f}")


def names_its_model(exchange: Exchange) -> Iterator[Fault]:
    """`model` is the name that was asked for."""
    asked = exchange.request_json["model"]
    for event, body in _bodies(exchange):
        if body.get("model") != asked:
            yield Fault(f"model is {body.get('model')!r}, asked for was {asked!r}", event)
            return


def names_its_revision(exchange: Exchange) -> Iterator[Fault]:
    """`system_fingerprint` holds the digest of the header Tidegate-Served-Revision, in every body or chunk."""
    header = exchange.headers.get("tidegate-served-revision")
    if not header:
        yield Fault("there is no header Tidegate-Served-Revision")
        return
    for event, body in _bodies(exchange):
        if header not in str(body.get("system_fingerprint")):
            says = f"system_fingerprint is {body.get('system_fingerprint')!r}, the header says {header!r}"
            yield Fault(says, event)
            return
