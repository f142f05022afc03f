"""Whether two schemas can be proven to have no value in common.

Only proofs count: False means "not proven". Proofs come from types, constants, ranges, counts, required properties, and
from the parts of a schema; a part that contradicts the other schema is enough.
"""

from typing import Any

from tidegate.grammar.schema.schema_document import SchemaDocument
from tidegate.grammar.schema.schema_support import is_number

MAX_PROOF_STEPS = 30_000
"""For one schema document."""

_MAX_DEPTH = 12
_ALL = frozenset(("null", "boolean", "object", "array", "string", "number"))


class DisjointProver:
    """`document` resolves references. Bounded: after `MAX_PROOF_STEPS` schemas looked at it proves nothing more."""

    def __init__(self, document: SchemaDocument) -> None:
        self._document = document
        self._steps_left = MAX_PROOF_STEPS

    def are_disjoint(self, first: Any, second: Any, depth: int = 0) -> bool:
        self._steps_left -= 1
        if first is False or second is False:
            return True
        if depth > _MAX_DEPTH or self._steps_left < 0 or not isinstance(first, dict) or not isinstance(second, dict):
            return False
        if self._by_parts(first, second, depth) or self._by_parts(second, first, depth):
            return True
        shared = self.types_of(first) & self.types_of(second)
        return all(self._by_type(kind, first, second, depth) for kind in shared)

    def types_of(self, schema: Any, depth: int = 0) -> frozenset[str]:
        """Returns the types that values of a schema may have; integers count as numbers."""
        self._steps_left -= 1
        if self._steps_left < 0:
            return _ALL
        if isinstance(schema, bool):
            return _ALL if schema else frozenset()
        found = _ALL
        for values in _constants(schema):
            found &= {type_name(value) for value in values}
        if "type" in schema:
            names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            found &= {"number" if name == "integer" else name for name in names}
        if depth < _MAX_DEPTH:
            for part in self._conjuncts(schema):
                found &= self.types_of(part, depth + 1)
            for options in _options(schema):
                found &= frozenset().union(*(self.types_of(option, depth + 1) for option in options))
        return found

    def _by_parts(self, first: dict[str, Any], second: dict[str, Any], depth: int) -> bool:
        if any(self.are_disjoint(part, second, depth + 1) for part in self._conjuncts(first)):
            return True
        return any(all(self.are_disjoint(o, second, depth + 1) for o in options) for options in _options(first))

    def _conjuncts(self, schema: dict[str, Any]) -> list[Any]:
        parts = list(schema.get("allOf", ()))
        if "$ref" in schema:
            parts.append(self._document.resolve(schema, schema["$ref"], "")[0])
        return parts

    def _by_type(self, kind: str, first: dict[str, Any], second: dict[str, Any], depth: int) -> bool:
        if self._by_constants(kind, first, second):
            return True
        match kind:
            case "number":
                return _above(first, second) or _above(second, first)
            case "string":
                return _exceeds(first, second, "minLength", "maxLength")
            case "array":
                return _exceeds(first, second, "minItems", "maxItems") or self._by_items(first, second, depth)
            case "object":
                return self._by_properties(first, second, depth) or self._by_properties(second, first, depth)
        return False

    def _by_constants(self, kind: str, first: dict[str, Any], second: dict[str, Any]) -> bool:
        mine = [v for values in _constants(first) for v in values if type_name(v) == kind]
        others = [v for values in _constants(second) for v in values if type_name(v) == kind]
        return (
            bool(_constants(first)) and bool(_constants(second)) and not any(equal(m, o) for m in mine for o in others)
        )

    def _by_properties(self, first: dict[str, Any], second: dict[str, Any], depth: int) -> bool:
        for name in first.get("required", ()) if isinstance(first.get("required"), list) else ():
            if self.are_disjoint(_property(first, name), _property(second, name), depth + 1):
                return True
        return False

    def _by_items(self, first: dict[str, Any], second: dict[str, Any], depth: int) -> bool:
        sure = max(first.get("minItems", 0), second.get("minItems", 0))
        return sure > 0 and self.are_disjoint(_first_item(first), _first_item(second), depth + 1)


def type_name(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "array"
    return "number"


def equal(first: Any, second: Any) -> bool:
    """Equality of JSON values: 1 is 1.0 and not true."""
    if type_name(first) != type_name(second):
        return False
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(equal(first[key], second[key]) for key in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(equal, first, second))
    return bool(first == second)


def _constants(schema: dict[str, Any]) -> list[list[Any]]:
    return ([[schema["const"]]] if "const" in schema else []) + ([schema["enum"]] if "enum" in schema else [])


def _options(schema: dict[str, Any]) -> list[list[Any]]:
    return [schema[keyword] for keyword in ("anyOf", "oneOf") if isinstance(schema.get(keyword), list)]


def _property(schema: dict[str, Any], name: str) -> Any:
    properties = schema.get("properties", {})
    if name in properties:
        return properties[name]
    if schema.get("patternProperties"):
        return True
    return schema.get("additionalProperties", True)


def _first_item(schema: dict[str, Any]) -> Any:
    items = schema.get("items", True)
    first = schema.get("prefixItems", items if isinstance(items, list) else None)
    return first[0] if first else items


def _above(first: dict[str, Any], second: dict[str, Any]) -> bool:
    low, high = _bound(first, "minimum"), _bound(second, "maximum")
    low_open, high_open = _bound(first, "exclusiveMinimum"), _bound(second, "exclusiveMaximum")
    if low is not None and high is not None and low > high:
        return True
    pairs = ((low, high_open), (low_open, high), (low_open, high_open))
    return any(least is not None and most is not None and least >= most for least, most in pairs)


def _bound(schema: dict[str, Any], keyword: str) -> float | None:
    value = schema.get(keyword)
    return value if is_number(value) else None


def _exceeds(first: dict[str, Any], second: dict[str, Any], least: str, most: str) -> bool:
    return bool(
        first.get(least, 0) > second.get(most, float("inf")) or second.get(least, 0) > first.get(most, float("inf"))
    )
