"""How JSON is written under a grammar, and how a schema's own JSON is read.

Every string has exactly one spelling: characters stand for themselves, and only the short escapes are used. With
`\\u` escapes a key could be spelled so that it escapes what a schema says of it. So control characters without a short
escape are never written. White space between tokens is bounded: a model that likes it cannot go on for ever.
"""

import json
import re
from typing import Any

from tidegate.errors import LimitFact
from tidegate.grammar.refusal import invalid, too_complex

MAX_SCHEMA_BYTES = 256 * 1024
MAX_SCHEMA_DEPTH = 64
MAX_SCHEMA_NODES = 20000
"""Objects, lists and values of a schema, before and after lowering."""

MAX_WHITESPACE = 40
"""Blanks and line breaks between two tokens of the output."""

JSON_OPTIONS = {
    "whitespace_pattern": rf"[ \t\r\n]{{1,{MAX_WHITESPACE}}}",
    "json_allowed_escapes": 'nrbtf\\"',
}

UNWRITABLE = re.compile("[\x00-\x07\x0b\x0e-\x1f]")
"""Characters that this output never contains: they have no short escape. U+007F has none either, and is left to it."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)


def read_schema(text: bytes) -> Any:
    """Returns the JSON value of a schema's text, its bounds checked before anything is built.

    Raises Refused: `invalid_schema` for what is not JSON, `grammar_too_complex` with `schema_bytes` or `schema_depth`.
    """
    if len(text) > MAX_SCHEMA_BYTES:
        raise too_complex("the schema is too large", LimitFact("schema_bytes", MAX_SCHEMA_BYTES, len(text)))
    depth = _depth(text)
    if depth > MAX_SCHEMA_DEPTH:
        raise too_complex("the schema is nested too deeply", LimitFact("schema_depth", MAX_SCHEMA_DEPTH, depth))
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise invalid("the schema is not JSON") from error


def write_json(value: Any) -> str:
    """Returns a value as the machines accept it: short escapes only, nothing between tokens."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _depth(text: bytes) -> int:
    depth = deepest = 0
    for byte in _STRING.sub(b"", text).translate(None, delete=_NOT_BRACKETS):
        depth += 1 if byte in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
