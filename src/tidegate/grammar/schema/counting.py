"""Keywords that count, in words that do not: properties, unique items, and items that a list must contain.

The backend counts written properties, and a model may write one twice; so a count is only left to it where writing
one twice does not help. Everything else becomes a union of cases, if they are few.
"""

from itertools import combinations, permutations
from math import comb
from typing import Any

from tidegate.grammar.patterns.ecma_pattern import other_than
from tidegate.grammar.refusal import unsupported
from tidegate.grammar.schema.disjoint import DisjointProver, equal

_MAX_CASES = 64
_MAX_PERMUTED = 5
_MAX_POSITIONS = 16


def count_properties(schema: dict[str, Any], path: str) -> tuple[dict[str, int], list[Any]]:
    """Returns what of the counts is left to the backend, and schemas that stand for the rest. Raises Refused."""
    kept: dict[str, int] = {}
    cases: list[Any] = []
    properties: dict[str, Any] = schema.get("properties", {})
    required = set(schema["required"]) if isinstance(schema.get("required"), list) else set()
    is_open = schema.get("additionalProperties", True) is not False or bool(schema.get("patternProperties"))
    optional = [name for name, part in properties.items() if name not in required and part is not False]
    least, most = int(schema.get("minProperties", 0)), schema.get("maxProperties")
    if least > len(required):
        cases += _at_least(least - len(required), optional, is_open, kept, f"{path}/minProperties")
    if most is not None:
        cases += _at_most(int(most) - len(required), optional, is_open, kept, f"{path}/maxProperties")
    if "maxProperties" in kept or "minProperties" in kept:
        kept.update({key: int(schema[key]) for key in kept})
    return kept, cases


def is_split_count(schema: dict[str, Any]) -> bool:
    """Whether this asks for one property at least, of any name, and lists names that may be absent."""
    properties = schema.get("properties", {})
    is_bare = not schema.get("required") and "propertyNames" not in schema and not schema.get("patternProperties")
    is_open = schema.get("additionalProperties", True) is not False
    return (
        is_bare and is_open and schema.get("minProperties") == 1 and "maxProperties" not in schema and bool(properties)
    )


def split_count(out: dict[str, Any], more: list[Any], path: str) -> None:
    """Splits an object's rules in two: one of the listed names is there, or only others are."""
    properties = out.pop("properties")
    further = out.pop("additionalProperties", {})
    if len(properties) > _MAX_CASES or sum(map(len, properties)) > 2000:
        raise unsupported("a count over so many names", f"{path}/minProperties")
    listed: dict[str, Any] = {"properties": properties, "additionalProperties": further}
    listed["anyOf"] = [{"required": [name]} for name, part in properties.items() if part is not False]
    others = {
        "patternProperties": {other_than(list(properties)): further},
        "additionalProperties": False,
        "minProperties": 1,
    }
    more.append({"anyOf": [listed, others] if listed["anyOf"] else [others]})


def _at_least(missing: int, optional: list[str], is_open: bool, kept: dict[str, int], path: str) -> list[Any]:
    if is_open:
        if missing == 1 and not optional:
            kept["minProperties"] = 0
            return []
        raise unsupported("a count of properties that are not all listed", path)
    if missing > len(optional):
        return [{"not": {"type": "object"}}]
    if comb(len(optional), missing) > _MAX_CASES:
        raise unsupported("a count with too many cases", path)
    return [{"anyOf": [{"not": {"type": "object"}}, *({"required": list(c)} for c in combinations(optional, missing))]}]


def _at_most(left: int, optional: list[str], is_open: bool, kept: dict[str, int], path: str) -> list[Any]:
    if left < 0:
        return [{"not": {"type": "object"}}]
    if is_open:
        if not optional:
            kept["maxProperties"] = 0
            return []
        raise unsupported("a count of properties that are not all listed", path)
    excess = len(optional) - left
    if excess <= 0:
        return []
    if comb(len(optional), excess) > _MAX_CASES:
        raise unsupported("a count with too many cases", path)
    return [{"anyOf": [{"properties": dict.fromkeys(names, False)} for names in combinations(optional, excess)]}]


def unique_items(schema: dict[str, Any], prover: DisjointProver, path: str) -> list[Any]:
    """Returns schemas that stand for `uniqueItems: true`. Raises Refused where that takes too many cases."""
    prefix: list[Any] = schema.get("prefixItems", [])
    rest = schema.get("items", True)
    if schema.get("maxItems", 2) <= 1 or (rest is False and len(prefix) <= 1):
        return []
    if rest is False:
        pairs = combinations(prefix[: int(schema.get("maxItems", len(prefix)))], 2)
        if all(prover.are_disjoint(a, b) for a, b in pairs):
            return []
        raise unsupported("uniqueItems", path)
    values = _finite(rest)
    if prefix or values is None or len(values) > _MAX_PERMUTED:
        raise unsupported("uniqueItems, except over few constants", path)
    orders = permutations(values)
    cases = [{"prefixItems": [{"const": value} for value in order], "items": False} for order in orders]
    return [{"anyOf": [{"not": {"type": "array"}}, *cases]}]


def _finite(items: Any) -> list[Any] | None:
    if not isinstance(items, dict):
        return None
    if "const" in items:
        return [items["const"]]
    if items.get("type") == "boolean" and "enum" not in items:
        return [True, False]
    values: list[Any] = []
    for value in items.get("enum", ()):
        if not any(equal(value, other) for other in values):
            values.append(value)
    return values or None


def contained_items(schema: dict[str, Any], path: str) -> list[Any]:
    """Returns schemas that stand for `contains`. Raises Refused where a list may be too long for cases."""
    part = schema["contains"]
    least, most = int(schema.get("minContains", 1)), schema.get("maxContains")
    if most is None and least == 0:
        return []
    if most is None and (part is True or part == {}):
        return [{"minItems": least}]
    if most is not None and int(most) == 0 and least == 0:
        return [{"items": {"not": part}}]
    prefix, rest = schema.get("prefixItems", []), schema.get("items", True)
    longest = schema.get("maxItems", len(prefix) if rest is False else None)
    if least != 1 or most is not None or longest is None or longest > _MAX_POSITIONS:
        raise unsupported("contains in a list of any length", path)
    cases = [{"prefixItems": [True] * i + [part], "minItems": i + 1} for i in range(int(longest))]
    return [{"anyOf": [{"not": {"type": "array"}}, *cases]}]
