"""Lowered schemas without unions and intersections: a list of cases, each of which says all that holds for a value.

For backends that have no intersection of their own. What cannot be said in one schema (two patterns on one string, two
multiples, patterns of names beside names) is refused.
"""

from collections.abc import Callable
from typing import Any

from tidegate.errors import LimitFact
from tidegate.grammar.refusal import too_complex, unsupported
from tidegate.grammar.schema.disjoint import equal

MAX_CASES = 512
_MAX_DEPTH = 64

OBJECT_KEYWORDS = frozenset(
    ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties")
)
_ARRAY_KEYWORDS = frozenset(("prefixItems", "items", "minItems", "maxItems"))
_GREATEST = frozenset(("minLength", "minItems", "minProperties", "minimum", "exclusiveMinimum"))
_LEAST = frozenset(("maxLength", "maxItems", "maxProperties", "maximum", "exclusiveMaximum"))
KNOWN = (
    OBJECT_KEYWORDS
    | _ARRAY_KEYWORDS
    | _GREATEST
    | _LEAST
    | {"type", "const", "enum", "pattern", "format", "multipleOf", "anyOf", "allOf", "$ref", "$defs"}
)
"""All that a lowered schema may hold. Anything else is refused and not overlooked."""


def flat_cases(schema: Any, definitions: dict[str, Any], depth: int = 0) -> list[dict[str, Any]]:
    """Returns cases without `anyOf`, `allOf`, `$ref` and `const`; none for a schema that nothing satisfies.

    Raises Refused.
    """
    if isinstance(schema, bool):
        return [{}] if schema else []
    unknown = set(schema) - KNOWN
    if unknown:
        raise unsupported(f"{min(unknown)} is not enforced by this backend")
    if depth > _MAX_DEPTH:
        raise unsupported("references and unions nested so deeply")
    base = {key: value for key, value in schema.items() if key not in ("anyOf", "allOf", "$ref", "$defs", "const")}
    if "const" in schema:
        base = _merged(base, {"enum": [schema["const"]]}) if "enum" in base else {**base, "enum": [schema["const"]]}
    cases = [base]
    for part in schema.get("allOf", ()):
        cases = _product(cases, flat_cases(part, definitions, depth + 1))
    if "anyOf" in schema:
        cases = _product(cases, [c for part in schema["anyOf"] for c in flat_cases(part, definitions, depth + 1)])
    if "$ref" in schema:
        target = definitions[schema["$ref"].rpartition("/")[2]]
        cases = _product(cases, flat_cases(target, definitions, depth + 1))
    return cases


def _product(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    count = len(some) * len(others)
    if count > MAX_CASES:
        raise too_complex("too many combinations of cases", LimitFact("schema_combinations", MAX_CASES, count))
    return [case for one in some for other in others if (case := _merged(one, other)).get("type") != []]


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    out = {**other, **one}
    for keyword in one.keys() & other.keys():
        if not equal(one[keyword], other[keyword]) and keyword not in OBJECT_KEYWORDS | _ARRAY_KEYWORDS:
            out[keyword] = _both(keyword, one[keyword], other[keyword])
    for keywords, merge in _GROUPS:
        if one.keys() & keywords and other.keys() & keywords:
            out.update(merge(one, other))
    return out


def _both(keyword: str, one: Any, other: Any) -> Any:
    if keyword in _GREATEST or keyword in _LEAST:
        return max(one, other) if keyword in _GREATEST else min(one, other)
    if keyword == "type":
        return common_types(one, other)
    if keyword == "enum":
        return [value for value in one if any(equal(value, rival) for rival in other)]
    raise unsupported(f"{keyword} twice for one value")


def common_types(one: Any, other: Any) -> list[str]:
    """Returns the types that both allow; integers are numbers."""
    some = set(one if isinstance(one, list) else [one])
    others = set(other if isinstance(other, list) else [other])
    common = some & others
    if "integer" in some | others and "number" in some | others:
        common |= (
            {"integer"}
            if ("integer" in some or "number" in some) and ("integer" in others or "number" in others)
            else set()
        )
    return sorted(common - ({"integer"} if "number" in common else set()))


def _objects(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    if "patternProperties" in one or "patternProperties" in other:
        raise unsupported("patternProperties beside other rules for an object")
    names = dict.fromkeys([*one.get("properties", ()), *other.get("properties", ())])
    out: dict[str, Any] = {
        "properties": {name: both(_property(one, name), _property(other, name)) for name in names},
        "additionalProperties": both(one.get("additionalProperties", True), other.get("additionalProperties", True)),
        "required": list(dict.fromkeys([*one.get("required", ()), *other.get("required", ())])),
    }
    return out | _bounds(one, other, "minProperties", "maxProperties")


def _property(schema: dict[str, Any], name: str) -> Any:
    properties = schema.get("properties", {})
    return properties[name] if name in properties else schema.get("additionalProperties", True)


def _arrays(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    count = max(len(one.get("prefixItems", ())), len(other.get("prefixItems", ())))
    prefix = [both(_item(one, i), _item(other, i)) for i in range(count)]
    out: dict[str, Any] = {"items": both(one.get("items", True), other.get("items", True))}
    if prefix:
        out["prefixItems"] = prefix
    return out | _bounds(one, other, "minItems", "maxItems")


def _item(schema: dict[str, Any], position: int) -> Any:
    prefix = schema.get("prefixItems", ())
    return prefix[position] if position < len(prefix) else schema.get("items", True)


def _bounds(one: dict[str, Any], other: dict[str, Any], least: str, most: str) -> dict[str, Any]:
    found = {key: [part[key] for part in (one, other) if key in part] for key in (least, most)}
    return {key: (max if key == least else min)(values) for key, values in found.items() if values}


def both(one: Any, other: Any) -> Any:
    """Returns a schema for what satisfies two."""
    if one is False or other is False:
        return False
    if one in (True, {}):
        return other
    if other in (True, {}):
        return one
    return {"allOf": [one, other]}


_GROUPS: tuple[tuple[frozenset[str], Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]], ...] = (
    (OBJECT_KEYWORDS, _objects),
    (_ARRAY_KEYWORDS, _arrays),
)
