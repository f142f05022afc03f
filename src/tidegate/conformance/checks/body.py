"""What stands at a path of a JSON body."""

from collections.abc import Iterator
from typing import Any

from tidegate.conformance.verdict import Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at


def has_value(exchange: Exchange, *, path: tuple[str | int, ...], value: Any) -> Iterator[Fault]:
    """At `path` stands exactly `value`, of the same type."""
    found = at(exchange.json, *path)
    if found is MISSING or type(found) is not type(value) or found != value:
        yield Fault(f"{'.'.join(map(str, path))} is {found!r}, expected {value!r}")
