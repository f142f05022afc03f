"""Keys that asks of one case share and that no earlier run has used: a server may remember keys for a day."""

import secrets

from tidegate.conformance.ask import Derived
from tidegate.conformance.verdict import CannotTell
from tidegate.conformance.wire.exchange import Exchange


def make_key(*, prefix: str = "conform-") -> str:
    """Returns a key that was never used before."""
    return prefix + secrets.token_hex(12)


def read_sent_header(exchange: Exchange, *, name: str, template: str = "{value}") -> str:
    """Returns a header that an earlier ask was sent with, put into `template` at `{value}`."""
    head = exchange.request.partition(b"\r\n\r\n")[0].decode("latin-1")
    for line in head.split("\r\n")[1:]:
        found, _, value = line.partition(":")
        if found.lower() == name.lower():
            return template.replace("{value}", value.strip())
    raise CannotTell(f"the request {exchange.ask!r} was sent without {name}")


FRESH_KEY = Derived(make_key, ())
"""A new key for each request that is sent with it."""


def key_of(name: str, *, template: str = "{value}", header: str = "Idempotency-Key") -> Derived:
    """Returns the key that the ask `name` was sent with."""
    return Derived(read_sent_header, (name,), {"name": header, "template": template})
