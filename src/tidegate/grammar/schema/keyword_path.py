"""Where a schema says what a backend that reads a lowered schema has refused."""

import re
from typing import Any

from tidegate.grammar.schema.schema_support import ENFORCED, escape

_WORDS = {
    "pattern": ("pattern", "format"),
    "format": ("format",),
    "multipleOf": ("multipleOf",),
    "patternProperties": ("patternProperties", "propertyNames"),
    "count": ("minProperties", "maxProperties", "maxItems", "minItems", "maxLength", "minLength"),
    "bounds": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "bound": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "constants": ("enum", "const"),
    "combinations": ("anyOf", "allOf", "oneOf"),
    "reference": ("$ref",),
    "references": ("$ref", "anyOf", "allOf"),
    "regular": ("pattern", "patternProperties"),
    "group": ("pattern",),
    "length": ("maxLength", "minLength"),
}


def keyword_path(schema: Any, message: str) -> str:
    """Returns the first keyword of a schema, in the order of its text, that a message speaks of; the root otherwise."""
    words = re.findall(r"[A-Za-z$]+", message)
    wanted = {name for word in words for name in _WORDS.get(word, (word,) if word in ENFORCED else ())}
    waiting: list[tuple[str, Any]] = [("", schema)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict):
            found = next((key for key in node if key in wanted), None)
            if found is not None:
                return f"{path}/{found}"
            waiting += reversed([(f"{path}/{escape(key)}", value) for key, value in node.items()])
        elif isinstance(node, list):
            waiting += reversed([(f"{path}/{i}", value) for i, value in enumerate(node)])
    return ""
