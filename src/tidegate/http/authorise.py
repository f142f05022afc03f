"""Who calls, decided from the head of a request before anything else is done with it.

Only the `Authorization` header and the path as it was sent count; never `Host`, nor a URL rebuilt from it. Every
refusal is InvalidApiKey or RouteNotAllowed, and none repeats what was presented. Public callers have API keys,
operators the one credential of the admin listener; neither is worth anything on the other listener.
"""

import hmac
import re
from collections.abc import Callable
from typing import Protocol

from tidegate.clock import Clock
from tidegate.contract import headers as names
from tidegate.errors import InvalidApiKey, RouteNotAllowed
from tidegate.http.request_head import RequestHead
from tidegate.http.router import UNMATCHED
from tidegate.lifecycle.key_ring import KeyRing
from tidegate.lifecycle.key_text import digest_of
from tidegate.lifecycle.principal import ANONYMOUS, Principal

Authorise = Callable[[RequestHead], Principal]

ADMINISTRATOR = Principal("admin", "admin")
"""Who presented the credential of the admin listener."""

MAX_CREDENTIAL_CHARS = 256
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/=-]+)")


class Keys(Protocol):
    """The keys of this moment."""

    def look(self, now: float) -> KeyRing:
        """Returns the keys as they are at an instant of the monotonic clock, or were a moment before."""
        ...

    def note_use(self, key_id: str, wall: float) -> None:
        """Notes that a key was used at an instant of the wall clock."""
        ...


def allow_everyone(_head: RequestHead) -> Principal:
    """The rule where nothing is configured."""
    return ANONYMOUS


def authorise_by_key(keys: Keys, clock: Clock) -> Authorise:
    """The rule of the public listener: everyone until there is a key, afterwards nobody without one."""

    def authorise(head: RequestHead) -> Principal:
        ring = keys.look(clock.now())
        if not ring.is_closed:
            return ANONYMOUS
        wall = clock.wall()
        principal = ring.identify(read_bearer(head), wall).principal
        keys.note_use(principal.key_id, wall)
        return principal

    return authorise


def authorise_by_credential(digest: bytes) -> Authorise:
    """The rule of an admin listener that has a credential; `digest` is that of its text."""

    def authorise(head: RequestHead) -> Principal:
        if not hmac.compare_digest(digest, digest_of(read_bearer(head))):
            raise InvalidApiKey("The admin credential is not valid.")
        return ADMINISTRATOR

    return authorise


def read_bearer(head: RequestHead) -> str:
    """Returns the credential of `Authorization: Bearer CREDENTIAL`. Raises InvalidApiKey for anything else.

    Several `Authorization` headers have been joined by commas, and are refused like any other text with a comma.
    """
    given = head.headers.get(names.IN_AUTHORIZATION)
    if given is None:
        raise InvalidApiKey("A key is needed: send the header `Authorization: Bearer KEY`.")
    match = _BEARER.fullmatch(given) if len(given) <= MAX_CREDENTIAL_CHARS else None
    if match is None:
        raise InvalidApiKey("The Authorization header is not `Bearer KEY`.")
    return match[1]


def check_route(principal: Principal, pattern: str) -> None:
    """Raises RouteNotAllowed when a caller may not use a route, whatever the method. An unmatched path is no route."""
    if principal.routes is not None and pattern != UNMATCHED and pattern not in principal.routes:
        raise RouteNotAllowed("This API key may not use this route.")


def forget_credential(head: RequestHead) -> None:
    """Drops the credential from the head: what comes after authorisation has no use for it, and cannot show it."""
    head.headers.pop(names.IN_AUTHORIZATION, None)
