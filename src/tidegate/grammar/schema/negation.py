"""The complement of a schema, as a schema, where that can be said.

A schema is a conjunction of keywords; its complement is the union of theirs. Each keyword speaks of one type only, so
each complement is guarded by that type. What has no complement in this language (patterns, formats, open item lists,
integers among numbers) is refused with the path of the keyword.
"""

import itertools
from collections.abc import Callable
from typing import Any

from tidegate.errors import LimitFact
from tidegate.grammar.json_text import MAX_SCHEMA_NODES
from tidegate.grammar.patterns.ecma_pattern import other_than
from tidegate.grammar.refusal import too_complex, unsupported
from tidegate.grammar.schema.disjoint import DisjointProver, type_name
from tidegate.grammar.schema.formats import ENFORCED_FORMATS, REFUSED_FORMATS
from tidegate.grammar.schema.implication import is_closed, is_implied, is_property_implied, listed_names
from tidegate.grammar.schema.schema_document import SchemaDocument
from tidegate.grammar.schema.schema_support import ENFORCED, TYPES, escape, is_number

_MAX_DEPTH = 24
_MAX_TEXT = 200
_FLIPPED = {
    "minLength": ("string", "maxLength", -1),
    "maxLength": ("string", "minLength", 1),
    "minItems": ("array", "maxItems", -1),
    "maxItems": ("array", "minItems", 1),
    "minProperties": ("object", "maxProperties", -1),
    "maxProperties": ("object", "minProperties", 1),
}
_FLIPPED_BOUNDS = {
    "minimum": "exclusiveMaximum",
    "maximum": "exclusiveMinimum",
    "exclusiveMinimum": "maximum",
    "exclusiveMaximum": "minimum",
}


class Negator:
    """Complements within one document."""

    def __init__(self, document: SchemaDocument, prover: DisjointProver) -> None:
        self._document = document
        self._prover = prover
        self._steps_left = MAX_SCHEMA_NODES

    def negate_within(self, schema: Any, frame: Any, path: str) -> Any:
        """Returns a schema that, for values of `frame`, holds exactly where `schema` does not. Raises Refused.

        What `frame` implies needs no complement, and so may have none.
        """
        schema, frame = self._followed(schema), self._followed(frame)
        if not isinstance(schema, dict) or not isinstance(frame, dict) or not self._document.is_one_resource:
            return self.negate(schema, path)
        left = {k: v for k, v in schema.items() if k not in ENFORCED or not is_implied(frame, schema, k, self._prover)}
        if "properties" in left:
            left["properties"] = {
                name: part for name, part in left["properties"].items() if not is_property_implied(frame, name, part)
            }
        options: list[Any] = []
        if left.get("additionalProperties") is False and is_closed(frame) and not left.get("patternProperties"):
            # of all names that `schema` does not list, values of `frame` can only have those that `frame` lists
            del left["additionalProperties"]
            further = sorted(listed_names(frame) - set(schema.get("properties", {})))
            options = [{"type": "object", "required": [name]} for name in further]
        complement = self.negate(left, path)
        if complement is True or not options:
            return complement
        return {"anyOf": options + ([complement] if complement is not False else [])}

    def _followed(self, schema: Any) -> Any:
        """Follows references that stand alone, as far as that goes without a circle."""
        for _ in range(_MAX_DEPTH):
            alone = isinstance(schema, dict) and "$ref" in schema and not (set(schema) & ENFORCED - {"$ref"})
            if not alone:
                break
            schema = self._document.resolve(schema, schema["$ref"], "")[0]
        return schema

    def negate(self, schema: Any, path: str, depth: int = 0) -> Any:
        """Returns a schema that holds exactly where `schema` does not. Raises Refused where there is none."""
        if isinstance(schema, bool):
            return not schema
        self._steps_left -= 1
        if self._steps_left < 0:
            limit = LimitFact("schema_nodes", MAX_SCHEMA_NODES, MAX_SCHEMA_NODES + 1)
            raise too_complex("complements of too many parts", limit, path)
        if depth > _MAX_DEPTH:
            raise unsupported("a complement of something so deep", path)
        if "$ref" in schema and self._document.refs_stand_alone:
            schema = {"$ref": schema["$ref"]} if len(schema) > 1 else schema
        options: list[Any] = []
        for keyword, value in schema.items():
            if keyword in ENFORCED:
                options += self._complements(schema, keyword, value, f"{path}/{keyword}", depth)
        options = [option for option in options if option is not False]
        if any(option is True for option in options):
            return True
        return {"anyOf": options} if options else False

    def _complements(self, schema: dict[str, Any], keyword: str, value: Any, path: str, depth: int) -> list[Any]:
        if keyword in _FLIPPED:
            kind, flipped, step = _FLIPPED[keyword]
            return [{"type": kind, flipped: int(value) + step}] if value + step >= 0 else []
        if keyword in _FLIPPED_BOUNDS and is_number(value):
            return [{"type": "number", _FLIPPED_BOUNDS[keyword]: value}]
        if keyword in _SILENT:
            return []
        found = _SIMPLE.get(keyword)
        if found is not None:
            return found(value, path)
        return self._structural(schema, keyword, value, path, depth)

    def _structural(self, schema: dict[str, Any], keyword: str, value: Any, path: str, depth: int) -> list[Any]:
        match keyword:
            case "$ref":
                target, where = self._document.resolve(schema, value, path)
                return [self.negate(target, where, depth + 1)]
            case "properties":
                return self._properties(value, path, depth)
            case "allOf":
                return [self.negate(part, f"{path}/{i}", depth + 1) for i, part in enumerate(value)]
            case "anyOf":
                return [{"allOf": [self.negate(part, f"{path}/{i}", depth + 1) for i, part in enumerate(value)]}]
            case "oneOf":
                pairs = [(a, b) for i, a in enumerate(value) for b in value[i + 1 :]]
                if not all(self._prover.are_disjoint(a, b) for a, b in pairs):
                    raise unsupported("a complement of oneOf", path)
                return self._structural(schema, "anyOf", value, path, depth)
            case "not":
                return [value]
        return self._contents(schema, keyword, value, path, depth)

    def _contents(self, schema: dict[str, Any], keyword: str, value: Any, path: str, depth: int) -> list[Any]:
        match keyword:
            case "contains":
                if schema.get("minContains", 1) != 1 or "maxContains" in schema:
                    raise unsupported("a complement of counted contains", path)
                return [{"type": "array", "items": self.negate(value, path, depth + 1)}]
            case "items":
                return self._items(schema, value, path, depth)
            case "additionalProperties" | "unevaluatedProperties" | "additionalItems" | "unevaluatedItems":
                if value is True or value == {}:
                    return []
        raise unsupported(f"a complement of {keyword}", path)

    def _properties(self, value: dict[str, Any], path: str, depth: int) -> list[Any]:
        found: list[Any] = []
        for name, part in value.items():
            complement = self.negate(part, f"{path}/{escape(name)}", depth + 1)
            if complement is not False:
                found.append({"type": "object", "properties": {name: complement}, "required": [name]})
        return found

    def _items(self, schema: dict[str, Any], value: Any, path: str, depth: int) -> list[Any]:
        if value is True or value == {}:
            return []
        if value is False and "prefixItems" not in schema:
            return [{"type": "array", "minItems": 1}]
        if isinstance(value, list) or "prefixItems" in schema:
            raise unsupported("a complement of item lists", path)
        return [{"type": "array", "contains": self.negate(value, path, depth + 1)}]


def _types(value: Any, path: str) -> list[Any]:
    names = set(value if isinstance(value, list) else [value])
    if "integer" in names and "number" not in names:
        raise unsupported("a complement of integers", path)
    rest = [name for name in TYPES if name not in names and name != "integer"]
    return [{"type": rest}] if rest else []


def _constants(values: list[Any], path: str) -> list[Any]:
    by_type: dict[str, list[Any]] = {}
    for value in values:
        by_type.setdefault(type_name(value), []).append(value)
    if "object" in by_type or "array" in by_type:
        raise unsupported("a complement of objects or lists", path)
    rest = [name for name in TYPES if name not in by_type and name != "integer"]
    found: list[Any] = [{"type": rest}] if rest else []
    if "boolean" in by_type:
        found += [{"const": value} for value in (True, False) if value not in by_type["boolean"]]
    if "string" in by_type:
        if any(len(text) > _MAX_TEXT for text in by_type["string"]):
            raise unsupported("a complement of long texts", path)
        found.append({"type": "string", NATIVE_PATTERN: other_than(by_type["string"])})
    if "number" in by_type:
        found += _number_gaps(sorted(set(by_type["number"])))
    return found


NATIVE_PATTERN: Any = ("pattern",)
"""Inside complements only: a pattern in the backend's own words. No JSON has such a key, so no caller can write it."""


def _number_gaps(numbers: list[Any]) -> list[Any]:
    edges = [None, *numbers, None]
    gaps = []
    for low, high in itertools.pairwise(edges):
        gap: dict[str, Any] = {"type": "number"}
        if low is not None:
            gap["exclusiveMinimum"] = low
        if high is not None:
            gap["exclusiveMaximum"] = high
        gaps.append(gap)
    return gaps


def _required(value: Any, _path: str) -> list[Any]:
    if isinstance(value, bool):
        return []
    return [{"type": "object", "properties": {name: False}} for name in value]


def _dependent_required(value: dict[str, list[str]], _path: str) -> list[Any]:
    return [
        {"type": "object", "required": [name], "properties": {other: False}}
        for name, others in value.items()
        for other in others
        if other != name
    ]


def _format(value: str, path: str) -> list[Any]:
    if value in ENFORCED_FORMATS | REFUSED_FORMATS:
        raise unsupported("a complement of a format", path)
    return []


_SILENT = frozenset(("$defs", "definitions", "minContains", "then", "else"))
"""What says nothing by itself; `if`, which gives the last two a meaning, has no complement here."""

_SIMPLE: dict[str, Callable[[Any, str], list[Any]]] = {
    "type": _types,
    "const": lambda value, path: _constants([value], path),
    "enum": _constants,
    "required": _required,
    "dependentRequired": _dependent_required,
    "format": _format,
}
