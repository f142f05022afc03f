"""Which live requests an operator wants to see: the query of `GET /admin/v1/requests`."""

from urllib.parse import parse_qsl

import msgspec

from tidegate.contract.quote import quote
from tidegate.errors import InvalidValue, UnknownParameter

DEFAULT_LISTED = 100
MAX_LISTED = 1000


class RequestFilter(msgspec.Struct, frozen=True):
    """At most `limit` requests, the oldest first. The others are exact values; None for any."""

    limit: int = DEFAULT_LISTED
    request_id: str | None = None
    """The caller's own name, `X-Request-Id`."""
    route: str | None = None
    model: str | None = None
    work: str | None = None
    reply: str | None = None
    key: str | None = None


EXACT = ("request_id", "route", "model", "work", "reply", "key")
"""Members of a live request that can be asked for."""


def read_filter(query: bytes) -> RequestFilter:
    """Reads a query string. Raises UnknownParameter, and InvalidValue for a bad limit or a name given twice."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=16)
    except ValueError:
        raise InvalidValue("The query is not readable.") from None
    members: dict[str, str] = {}
    for name, value in pairs:
        if name != "limit" and name not in EXACT:
            raise UnknownParameter(f"{quote(name)} is not a parameter of this route", param=name[:64])
        if name in members:
            raise InvalidValue(f"{name}: given twice", param=name)
        members[name] = value
    limit = members.pop("limit", str(DEFAULT_LISTED))
    if not (limit.isascii() and limit.isdigit() and len(limit) < 8 and 1 <= int(limit) <= MAX_LISTED):
        raise InvalidValue(f"limit: must be an integer from 1 to {MAX_LISTED}", param="limit")
    return RequestFilter(int(limit), **members)
