"""Fields of a body that no struct knows: found by name, so that nobody's typing mistake goes unseen.

Looked at: the top level, and the members of the few objects in `_NESTED` where a misspelling would change the result.
Messages, tools and schemas are not looked into: clients replay what other servers gave them.
"""

import string
from collections.abc import Iterator
from enum import StrEnum
from urllib.parse import quote as percent_encode

import msgspec

from tidegate.contract.bounds import Limits
from tidegate.contract.codec import decode_members
from tidegate.contract.generation import StreamOptions
from tidegate.contract.quote import quote
from tidegate.contract.response_format import JsonSchema, StructuredOutputs
from tidegate.errors import UnknownParameter

_NESTED: dict[str, frozenset[str]] = {
    "stream_options": frozenset(StreamOptions.__struct_fields__),
    "structured_outputs": frozenset(StructuredOutputs.__struct_fields__),
    "response_format": frozenset({"type", "json_schema"}),
    "response_format.json_schema": frozenset(JsonSchema.__struct_fields__),
}
_HEADER_SAFE = string.ascii_letters + string.digits + "._-"
_MAX_NAME_CHARACTERS = 64
_MAX_HEADER_NAMES = 16


class UnknownFieldPolicy(StrEnum):
    """What to do about unknown fields."""

    REPORT = "report"
    """Name them in `Tidegate-Ignored-Fields`."""
    REJECT = "reject"
    """400 `unknown_parameter`."""
    IGNORE = "ignore"
    """Say nothing."""


def unknown_fields(body: bytes, request: type[msgspec.Struct], limits: Limits) -> list[str]:
    """Returns the names of the members of `body` that `request` does not have, in order; `stream_options.x` if nested.

    `body` has been decoded as `request` before, so it is a JSON object.
    """
    return list(_unknown(body, "", frozenset(request.__struct_fields__), limits))


def _unknown(text: bytes, prefix: str, known: frozenset[str], limits: Limits) -> Iterator[str]:
    for member, raw in decode_members(text, limits).items():
        name = prefix + member
        if member not in known:
            yield name
        elif name in _NESTED and bytes(raw).startswith(b"{"):
            yield from _unknown(bytes(raw), f"{name}.", _NESTED[name], limits)


def reported_fields(names: list[str], policy: UnknownFieldPolicy) -> list[str]:
    """Returns the names to report under `policy`. Raises UnknownParameter, naming the first, under `reject`."""
    if not names or policy is UnknownFieldPolicy.IGNORE:
        return []
    if policy is UnknownFieldPolicy.REJECT:
        first = names[0][:_MAX_NAME_CHARACTERS]
        raise UnknownParameter(f"{quote(names[0])} is not a field of this request", param=first)
    return names


def ignored_fields_header(names: list[str]) -> str:
    """Returns the value of `Tidegate-Ignored-Fields`: at most 16 names, each cut and percent-encoded where needed."""
    shown = [percent_encode(name[:_MAX_NAME_CHARACTERS], safe=_HEADER_SAFE) for name in names[:_MAX_HEADER_NAMES]]
    return ", ".join(shown + (["..."] if len(names) > _MAX_HEADER_NAMES else []))
