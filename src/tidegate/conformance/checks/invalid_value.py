"""That a request was refused before anything ran, in words that say what to mend."""

from collections.abc import Iterator
from dataclasses import replace

from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

INVALID = (400, 422)
"""The statuses by which servers say that a value is not valid."""


def is_refused(exchange: Exchange, *, statuses: tuple[int, ...] = INVALID) -> Iterator[Fault]:
    """The status is one of `statuses`, and an error object has a message."""
    if exchange.status not in statuses:
        got = exchange.body[:150].decode("utf-8", "replace")
        yield Fault(f"status {exchange.status}, expected {' or '.join(map(str, statuses))}: {got}")
    elif not isinstance(message := at(exchange.json, "error", "message"), str) or not message:
        yield Fault(f"no error.message: {exchange.body[:150].decode('utf-8', 'replace')}")


def is_refused_before_streaming(whole: Exchange, streamed: Exchange) -> Iterator[Fault]:
    """What is refused where a whole answer was asked for is refused by the status where a stream was. Raises CannotTell
    where it is not refused at all, which is another case's matter.
    """
    if whole.status not in INVALID:
        raise CannotTell(f"the same request for a whole answer gets {whole.status}: nothing is refused")
    for fault in is_refused(streamed):
        yield replace(fault, ask=streamed.ask)


def names_fault(
    exchange: Exchange, *, status: int = 400, code: str, param: str | None = None, says: str = "", limit: str = ""
) -> Iterator[Fault]:
    """The status, `error.code` and `error.param` are exactly these; the message holds `says`; the limit has the name
    `limit`, with numbers under `value` and `actual`.
    """
    error = at(exchange.json, "error")
    for what, found, wanted in (
        ("status", exchange.status, status),
        ("error.code", at(error, "code"), code),
        ("error.param", at(error, "param"), param),
    ):
        if found != wanted:
            yield Fault(f"{what} is {found!r}, expected {wanted!r}")
    if says and says not in str(at(error, "message")):
        yield Fault(f"error.message does not name {says!r}: {str(at(error, 'message'))[:200]}")
    if limit:
        found = at(error, "limit", "name")
        if found != limit or not all(isinstance(at(error, "limit", name), int) for name in ("value", "actual")):
            yield Fault(f"error.limit is {at(error, 'limit')!r}, expected {limit!r} with value and actual")
