"""What stands in the headers of an answer."""

import re
from collections.abc import Iterator

from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at


def has_header(exchange: Exchange, *, name: str, pattern: str = ".+") -> Iterator[Fault]:
    """The header is there, and its whole value matches. `name` in lower case."""
    value = exchange.headers.get(name)
    if value is None:
        yield Fault(f"no {name} header")
    elif re.fullmatch(pattern, value) is None:
        yield Fault(f"{name} is {value!r}")


def has_no_header(exchange: Exchange, *, name: str) -> Iterator[Fault]:
    """The header is not there."""
    if name in exchange.headers:
        yield Fault(f"{name} is {exchange.headers[name]!r}, expected none")


def is_uncompressed(exchange: Exchange) -> Iterator[Fault]:
    """The body is sent as it is, so that every event can be read when it comes."""
    coding = exchange.headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        yield Fault(f"content-encoding is {coding!r}, expected none")


def is_event_stream(exchange: Exchange) -> Iterator[Fault]:
    """The answer says that it is an event stream."""
    if not exchange.is_stream:
        yield Fault(f"content-type is {exchange.headers.get('content-type')!r}, expected text/event-stream")


def is_json(exchange: Exchange) -> Iterator[Fault]:
    """The answer says that it is JSON."""
    kind = exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        yield Fault(f"content-type is {kind or None!r}, expected application/json")


def allows(exchange: Exchange, *, method: str) -> Iterator[Fault]:
    """A 405 names the methods that would do, `method` among them (RFC 9110, 15.5.6). Other statuses pass."""
    if exchange.status != 405:
        return
    named = [name.strip() for name in exchange.headers.get("allow", "").split(",")]
    if method not in named:
        yield Fault(f"Allow is {exchange.headers.get('allow')!r}, expected {method} in it")


def has_no_body(exchange: Exchange) -> Iterator[Fault]:
    """Nothing follows the head."""
    if exchange.body:
        yield Fault(f"{len(exchange.body)} bytes of a body, expected none")


def echoes(exchange: Exchange, *, name: str, value: str) -> Iterator[Fault]:
    """The header holds exactly `value`, the marker of the ask filled in."""
    expected = value.replace("{marker}", exchange.marker)
    found = exchange.headers.get(name)
    if found != expected:
        yield Fault(f"{name} is {found!r}, expected {expected!r}")


def has_own_request_id(exchange: Exchange, *, hostile: str) -> Iterator[Fault]:
    """`X-Request-Id` is the server's own: a well-formed name that holds nothing of what was sent."""
    found = exchange.headers.get("x-request-id")
    if found is None or re.fullmatch(r"[A-Za-z0-9._-]{1,128}", found) is None:
        yield Fault(f"x-request-id is {found!r}, expected a name of the server's own")
    sent = hostile.replace("{marker}", exchange.marker)
    if found is not None and (sent in found or exchange.marker in found):
        yield Fault(f"x-request-id repeats what was sent: {found[:100]!r}")


def have_distinct_request_ids(first: Exchange, second: Exchange) -> Iterator[Fault]:
    """Two requests have two ids."""
    ids = [exchange.headers.get("x-request-id") for exchange in (first, second)]
    if None in ids:
        raise CannotTell("the answers have no x-request-id")
    if ids[0] == ids[1]:
        yield Fault(f"two requests have one x-request-id, {ids[0]!r}")


def serves_told_revision(exchange: Exchange) -> Iterator[Fault]:
    """`Tidegate-Served-Revision` is the `system_fingerprint` of the body, and of every chunk."""
    revision = exchange.headers.get("tidegate-served-revision")
    if not revision:
        yield Fault("no tidegate-served-revision header")
        return
    for event, body in exchange.numbered_bodies:
        found = at(body, "system_fingerprint")
        if found != revision:
            told = "missing" if found is MISSING else repr(found)
            yield Fault(f"system_fingerprint is {told}, the header says {revision!r}", event)
            return


def names_ignored(exchange: Exchange, *, names: tuple[str, ...]) -> Iterator[Fault]:
    """`Tidegate-Ignored-Fields` names exactly these fields."""
    said = exchange.headers.get("tidegate-ignored-fields", "")
    found = sorted(filter(None, (name.strip() for name in said.split(","))))
    if found != sorted(names):
        yield Fault(f"tidegate-ignored-fields names {found}, expected {sorted(names)}")
