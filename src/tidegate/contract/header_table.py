"""What each header means, and where it stands: for the documents about this server (CONTRACT.md section 2).

Whether a request header is served is decided where it is read.
"""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from tidegate.contract import headers


class Place(Enum):
    """On which operations, or in which answers, a header stands."""

    EVERYWHERE = auto()
    WORKING = auto()
    """Operations that ask the engine."""
    WITH_BODY = auto()
    """Operations that take a body, and answers to them."""
    ERROR = auto()
    RETRY_LATER = auto()
    """Errors that say when to come back."""
    NO_KEY = auto()
    """401."""
    NOT_ALLOWED = auto()
    """405."""


@dataclass(frozen=True, slots=True)
class HeaderRow:
    """`is_certain`: every such answer has it. `schema` is JSON Schema for the value."""

    meaning: str
    place: Place
    is_certain: bool = False
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "string"})


_MILLISECONDS = {"type": "string", "pattern": "^[0-9]{1,12}$"}
_COUNT = {"type": "integer", "minimum": 0}

REQUEST_HEADERS: dict[str, HeaderRow] = {
    "Authorization": HeaderRow("Bearer KEY: who calls.", Place.EVERYWHERE),
    "X-Request-Id": HeaderRow(
        "The caller's name for this request, echoed when it matches [A-Za-z0-9._-]{1,128}; for tracing only.",
        Place.EVERYWHERE,
    ),
    "Idempotency-Key": HeaderRow(
        "The stable id of one operation: a repeated request gets the recorded answer.",
        Place.WORKING,
        schema={"type": "string", "minLength": 1, "maxLength": 257},
    ),
    "X-Deadline-Ms": HeaderRow("Time that the caller still has, from receipt.", Place.WORKING, schema=_MILLISECONDS),
    "X-First-Token-Deadline-Ms": HeaderRow(
        "Time that the caller still has until the first token.", Place.WORKING, schema=_MILLISECONDS
    ),
    "X-Priority": HeaderRow(
        "Lower runs first; clamped to what the key may ask for.",
        Place.WORKING,
        schema={"type": "integer", "minimum": -100, "maximum": 100},
    ),
    "traceparent": HeaderRow("W3C trace context; what is not well formed is ignored.", Place.EVERYWHERE),
    "tracestate": HeaderRow("W3C trace context, passed on beside traceparent.", Place.EVERYWHERE),
}

RESPONSE_HEADERS: dict[str, HeaderRow] = {
    headers.REQUEST_ID: HeaderRow("The id of this request.", Place.EVERYWHERE, is_certain=True),
    headers.CONTRACT: HeaderRow(
        "Version of the contract that the server keeps.",
        Place.EVERYWHERE,
        is_certain=True,
        schema={"type": "string", "pattern": "^1\\.[0-9]+$"},
    ),
    headers.SERVED_REVISION: HeaderRow(
        "Execution identity: a digest over weights, tokenizer, template, formats, grammar backend and engine.",
        Place.WITH_BODY,
        schema={"type": "string", "pattern": "^[0-9a-f]{32}$"},
    ),
    headers.IGNORED_FIELDS: HeaderRow("Unknown body fields that had no effect.", Place.WORKING),
    headers.IDEMPOTENT_REPLAYED: HeaderRow(
        "true on a recorded answer.", Place.WORKING, schema={"type": "string", "enum": ["true"]}
    ),
    "X-RateLimit-Limit-Requests": HeaderRow("Requests a minute of the key.", Place.WORKING, schema=_COUNT),
    "X-RateLimit-Remaining-Requests": HeaderRow("Requests that the key has left.", Place.WORKING, schema=_COUNT),
    "X-RateLimit-Reset-Requests": HeaderRow("Time until all requests are there again.", Place.WORKING),
    "X-RateLimit-Limit-Tokens": HeaderRow("Tokens a minute of the key.", Place.WORKING, schema=_COUNT),
    "X-RateLimit-Remaining-Tokens": HeaderRow("Tokens that the key has left.", Place.WORKING, schema=_COUNT),
    "X-RateLimit-Reset-Tokens": HeaderRow("Time until all tokens are there again.", Place.WORKING),
    headers.SHOULD_RETRY: HeaderRow(
        "Whether the same request may succeed later.",
        Place.ERROR,
        is_certain=True,
        schema={"type": "string", "enum": ["true", "false"]},
    ),
    headers.RETRY_AFTER: HeaderRow(
        "Whole seconds to wait before the next attempt.",
        Place.RETRY_LATER,
        is_certain=True,
        schema={"type": "integer", "minimum": 1, "maximum": 120},
    ),
    headers.WWW_AUTHENTICATE: HeaderRow("Which credential is wanted.", Place.NO_KEY, is_certain=True),
    headers.ALLOW: HeaderRow("The methods of this route.", Place.NOT_ALLOWED, is_certain=True),
    headers.DEPRECATION: HeaderRow("When the route or field became deprecated.", Place.EVERYWHERE),
    headers.SUNSET: HeaderRow("When the route or field goes away.", Place.EVERYWHERE),
}
