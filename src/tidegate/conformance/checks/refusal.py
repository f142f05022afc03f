"""Refusals in the form that a client understands: status, error object, and when to come again."""

from collections.abc import Iterator

from tidegate.conformance.checks.status import has_status
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import NOT_JSON, at

OVERLOADED = (429, 503)
LONGEST_WAIT_S = 120
"""The official client takes a longer `Retry-After` as a ban on coming again."""


def has_error_object(exchange: Exchange) -> Iterator[Fault]:
    """The body is `{"error": {...}}` with message and type; what else it must hold is for the cases of errors."""
    if exchange.json is NOT_JSON:
        yield Fault(f"the body of a {exchange.status} is not JSON: {exchange.body[:80]!r}")
        return
    if not isinstance(at(exchange.json, "error"), dict):
        yield Fault(f"the body of a {exchange.status} has no `error` object: {exchange.body[:80]!r}")
        return
    for name in ("message", "type"):
        if not isinstance(value := at(exchange.json, "error", name), str):
            yield Fault(f"error.{name} is {value!r}")


def says_when_to_retry(exchange: Exchange) -> Iterator[Fault]:
    """`Retry-After` is there, in whole seconds, 1 to 120, and `X-Should-Retry` is not `false`."""
    after = exchange.headers.get("retry-after")
    if after is None:
        yield Fault(f"a {exchange.status} without Retry-After")
    elif not (after.isascii() and after.isdigit() and 1 <= int(after) <= LONGEST_WAIT_S):
        yield Fault(f"Retry-After is {after!r}, expected 1 to {LONGEST_WAIT_S} whole seconds")
    if exchange.headers.get("x-should-retry", "true") != "true":
        yield Fault(f"X-Should-Retry is {exchange.headers['x-should-retry']!r} beside Retry-After")


def is_refused(
    exchange: Exchange,
    *,
    status: int,
    codes: tuple[str, ...],
    kind: str | None = None,
    may_retry: bool | None = None,
) -> Iterator[Fault]:
    """The status, the error object, one of `codes`, the error's type `kind`, and whether to come again: True asks for
    `Retry-After`, False for `X-Should-Retry: false`, None for nothing.
    """
    yield from has_status(exchange, allowed=(status,))
    if exchange.status != status:
        return
    yield from has_error_object(exchange)
    code = at(exchange.json, "error", "code")
    if code not in codes:
        yield Fault(f"error.code is {code!r}, expected {' or '.join(codes)}")
    if kind is not None and at(exchange.json, "error", "type") != kind:
        yield Fault(f"error.type is {at(exchange.json, 'error', 'type')!r}, expected {kind!r}")
    if may_retry:
        yield from says_when_to_retry(exchange)
    elif may_retry is False and exchange.headers.get("x-should-retry") != "false":
        yield Fault(f"X-Should-Retry is {exchange.headers.get('x-should-retry')!r}, expected 'false'")


def are_refused_alike(exchanges: tuple[Exchange, ...]) -> Iterator[Fault]:
    """The same wrong request has one answer, however much else runs; some may be refused as overload. Which answer is
    the matter of the cases of errors. Raises CannotTell where it is served: nothing fails then.
    """
    statuses = {exchange.status for exchange in exchanges if exchange.status not in OVERLOADED}
    if None in statuses:
        yield Fault("a wrong request has no answer", ask=exchanges[0].ask)
    elif len(statuses) > 1:
        yield Fault(f"the same wrong request is answered {sorted(map(str, statuses))}", ask=exchanges[0].ask)
    elif statuses == {200}:
        raise CannotTell("a wrong request is answered: nothing here fails")
