"""Which browser pages of other origins may read answers (WHATWG Fetch, section 3.2).

Decides the headers of every answer and of a preflight, from the request's `Origin`. An origin matches as it was
configured, character for character; `*` matches all. Credentials of the browser's own (cookies) are never allowed: a
key travels in `Authorization`. It does not know routes, keys or methods that exist.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.contract import headers as names

Lines = list[tuple[str, str]]

ANY = "*"
METHODS = "GET, HEAD, POST, OPTIONS"
MAX_REQUESTED_HEADERS = 64

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s,*?#@]+")
_STAINLESS = re.compile(r"x-stainless-[a-z0-9-]{1,64}")
_ALLOWED = (
    "authorization",
    "content-type",
    "accept",
    names.IN_IDEMPOTENCY_KEY,
    names.IN_REQUEST_ID,
    names.IN_DEADLINE_MS,
    names.IN_FIRST_TOKEN_DEADLINE_MS,
    names.IN_PRIORITY,
    names.IN_TRACEPARENT,
    names.IN_TRACESTATE,
    "openai-organization",
    "openai-project",
)
"""What our callers may send. `*` would not cover `Authorization`."""

EXPOSED = ", ".join(
    (
        names.REQUEST_ID,
        names.CONTRACT,
        names.SERVED_REVISION,
        names.IGNORED_FIELDS,
        *(f"X-RateLimit-{what}-{of}" for of in ("Requests", "Tokens") for what in ("Limit", "Remaining", "Reset")),
        names.RETRY_AFTER,
        names.SHOULD_RETRY,
        names.IDEMPOTENT_REPLAYED,
        names.DEPRECATION,
        names.SUNSET,
    )
)


@dataclass(frozen=True, slots=True)
class CorsPolicy:
    """`origins` are exact origins, or `*`; none turns it all off. `max_age_s`: how long a preflight is remembered.

    Raises ValueError for what is no origin: browsers send scheme, host and port in lower case, and nothing behind it.
    """

    origins: tuple[str, ...] = ()
    max_age_s: int = 600

    def __post_init__(self) -> None:
        for origin in self.origins:
            if origin != ANY and not _ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"{origin[:64]!r} is no origin; one looks like https://app.example:8443, without a path"
                )

    def answer_headers(self, headers: Mapping[str, str]) -> Lines:
        """Returns what every answer to a request with `headers` has to say, errors and streams included."""
        if not self.origins:
            return []
        allowed = self._allow_origin(headers)
        lines = [] if ANY in self.origins else [("Vary", "Origin")]  # caches must not mix up what origins were told
        if allowed is not None:
            lines += [("Access-Control-Allow-Origin", allowed), ("Access-Control-Expose-Headers", EXPOSED)]
        return lines

    def preflight_headers(self, method: str, headers: Mapping[str, str]) -> Lines | None:
        """Returns what a preflight is answered beside `answer_headers`; None for any other request or origin."""
        is_preflight = method == "OPTIONS" and "access-control-request-method" in headers
        if not is_preflight or self._allow_origin(headers) is None:
            return None
        return [
            ("Access-Control-Allow-Methods", METHODS),
            ("Access-Control-Allow-Headers", ", ".join(_allowed(headers.get("access-control-request-headers", "")))),
            ("Access-Control-Max-Age", str(self.max_age_s)),
            ("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers"),
        ]

    def _allow_origin(self, headers: Mapping[str, str]) -> str | None:
        origin = headers.get("origin")
        if origin is None:
            return None
        if ANY in self.origins:
            return ANY
        return origin if origin in self.origins else None


def _allowed(requested: str) -> list[str]:
    """Returns all headers that may be sent: the fixed ones, and of those asked for the clients' own counters."""
    asked = [name.strip().lower() for name in requested.split(",", MAX_REQUESTED_HEADERS)[:MAX_REQUESTED_HEADERS]]
    return [*_ALLOWED, *(name for name in dict.fromkeys(asked) if _STAINLESS.fullmatch(name))]
