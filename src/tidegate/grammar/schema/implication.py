"""Whether one schema's values satisfy a single keyword of another one: proofs by looking, never by search."""

from typing import Any

from tidegate.grammar.schema.disjoint import DisjointProver, equal

_ALONE = frozenset(
    [
        "type",
        "const",
        "enum",
        "required",
        "pattern",
        "format",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
    ]
)
"""Keywords whose meaning does not depend on their neighbours (draft 4's truth values aside)."""


def is_implied(frame: dict[str, Any], schema: dict[str, Any], keyword: str, prover: DisjointProver) -> bool:
    """Whether every value of `frame` satisfies `keyword` of `schema`."""
    value = schema[keyword]
    if keyword in _ALONE and keyword in frame and equal(frame[keyword], value) and not _has_truth_bounds(schema):
        return True
    match keyword:
        case "type":
            names = value if isinstance(value, list) else [value]
            return prover.types_of(frame) <= set(names)
        case "required":
            mine = frame.get("required")
            return isinstance(value, list) and isinstance(mine, list) and set(value) <= set(mine)
        case "additionalProperties":
            return value is False and is_closed(frame) and listed_names(frame) <= set(schema.get("properties", {}))
    return False


def is_property_implied(frame: dict[str, Any], name: str, part: Any) -> bool:
    """Whether no value of `frame` has a property `name` that breaks `part`."""
    properties = frame.get("properties", {})
    if name in properties:
        return properties[name] is False or equal(properties[name], part)
    return is_closed(frame)


def is_closed(schema: dict[str, Any]) -> bool:
    return schema.get("additionalProperties") is False and not schema.get("patternProperties")


def listed_names(schema: dict[str, Any]) -> set[str]:
    """Returns the names under `properties` that a value may have."""
    return {name for name, part in schema.get("properties", {}).items() if part is not False}


def _has_truth_bounds(schema: dict[str, Any]) -> bool:
    return any(isinstance(schema.get(keyword), bool) for keyword in ("exclusiveMinimum", "exclusiveMaximum"))
