"""Each lowering says the same as the keyword: on every value of a pool, the machine agrees with a validator."""

import json
from typing import Any

import jsonschema_rs
import pytest

from harness.schema_judge import accepts, byte_compiler, random_text
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.grammar_spec import JsonSchemaSpec

COMPILER, WORDS = byte_compiler()

SCALARS: list[Any] = [None, True, False, 0, 1, 2, 3, 7, -4, 1.5, "", "a", "b", "ab", "abc", "é", "x y", "a\n", "日本語"]
LISTS: list[Any] = [[], [1], ["a"], [1, 2], [1, 1], ["a", "b"], ["a", "a"], ["b", "a"], [1, "a"], ["a", 1], [1, 2, 3]]
OBJECTS: list[Any] = [
    {},
    *({name: value} for name in ("a", "b", "c", "d") for value in (1, 2, "x", "y")),
    *({"a": a, "b": b} for a in (1, "x") for b in (1, "x", "y")),
    {"a": 1, "b": 2, "c": 3},
    {"a": "x", "c": 1},
    {"b": 1, "c": 1},
    {"a": {"a": 1}},
    {"kind": "cat", "a": 1},
    {"kind": "dog", "b": 1},
    {"kind": "dog", "a": 1},
    {"a": 1, "b": 1, "c": 1, "d": 1},
]
POOL: list[Any] = [*SCALARS, *LISTS, *OBJECTS]

CAT = {"properties": {"kind": {"const": "cat"}, "a": {}}, "required": ["kind"], "additionalProperties": False}
DOG = {"properties": {"kind": {"const": "dog"}, "b": {}}, "required": ["kind"], "additionalProperties": False}

EQUIVALENT: dict[str, Any] = {
    "oneOf by types": {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": ["array", "null"]}]},
    "oneOf by a discriminator": {"oneOf": [{"type": "object", **CAT}, {"type": "object", **DOG}]},
    "oneOf through references": {
        "$defs": {"cat": {"type": "object", **CAT}, "dog": {"type": "object", **DOG}},
        "oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}],
    },
    "oneOf by enums": {"oneOf": [{"enum": ["a", 1]}, {"enum": ["b", 2]}]},
    "oneOf by ranges": {
        "oneOf": [{"type": "integer", "maximum": 1}, {"type": "integer", "minimum": 3}, {"type": "string"}]
    },
    "oneOf by lengths": {"type": "string", "oneOf": [{"maxLength": 1}, {"minLength": 3}]},
    "oneOf that overlaps in required": {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "oneOf of three required": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}]},
    "oneOf that overlaps in enums": {"oneOf": [{"enum": ["a", "b", 1]}, {"enum": ["b", 2]}]},
    "oneOf of closed objects that overlap": {
        "oneOf": [
            {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
            {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"], "additionalProperties": False},
            {"type": "object", "properties": {"c": {}}, "additionalProperties": False},
        ]
    },
    "not const text": {"not": {"const": "a"}},
    "not enum of several types": {"not": {"enum": ["a", "ab", 1, 2.5, None, True]}},
    "not type": {"not": {"type": ["string", "object"]}},
    "not number": {"not": {"type": "number"}},
    "not required": {"type": "object", "not": {"required": ["a"]}},
    "not required both": {"not": {"required": ["a", "b"]}},
    "not a property's value": {"not": {"properties": {"a": {"const": 1}}, "required": ["a"]}},
    "not anyOf": {"not": {"anyOf": [{"type": "object"}, {"const": 1}]}},
    "not not": {"not": {"not": {"type": "string", "minLength": 2}}},
    "not a range": {"not": {"minimum": 2}},
    "not lengths": {"not": {"minLength": 2, "maxLength": 2}},
    "not counts of items": {"not": {"minItems": 2}},
    "not contains": {"not": {"contains": {"const": 1}}},
    "not beside type": {"type": "string", "not": {"enum": ["a", "abc"]}},
    "not of a reference": {"$defs": {"x": {"enum": ["a", 1]}}, "not": {"$ref": "#/$defs/x"}},
    "if then else": {
        "type": "object",
        "if": {"properties": {"kind": {"const": "cat"}}, "required": ["kind"]},
        "then": {"required": ["a"]},
        "else": {"required": ["b"]},
    },
    "if then": {"if": {"type": "string"}, "then": {"minLength": 2}},
    "if else": {"if": {"required": ["a"]}, "else": {"required": ["b"]}},
    "if alone": {"if": {"const": 1}},
    "dependentRequired": {"dependentRequired": {"a": ["b"], "c": ["a", "b"]}},
    "dependentSchemas": {"dependentSchemas": {"a": {"properties": {"b": {"type": "string"}}, "required": ["b"]}}},
    "old dependencies": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "dependencies": {"a": ["b"], "c": {"required": ["b"]}},
    },
    "contains in a short list": {"type": "array", "maxItems": 3, "contains": {"const": 2}},
    "contains anything": {"contains": {}},
    "contains nothing of it": {"contains": {"const": 1}, "minContains": 0, "maxContains": 0},
    "contains in a tuple": {"prefixItems": [{}, {}], "items": False, "contains": {"type": "string"}},
    "uniqueItems of few": {"items": {"enum": ["a", "b", 1]}, "uniqueItems": True},
    "uniqueItems of truth values": {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
    "uniqueItems of a tuple of types": {
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "items": False,
        "uniqueItems": True,
    },
    "uniqueItems of one": {"maxItems": 1, "uniqueItems": True},
    "minProperties of a closed object": {
        "properties": {"a": {}, "b": {}, "c": {}},
        "additionalProperties": False,
        "minProperties": 2,
    },
    "minProperties 1 of an open object": {"properties": {"a": {"type": "integer"}, "b": {}}, "minProperties": 1},
    "minProperties 1 of any": {"minProperties": 1},
    "maxProperties": {"maxProperties": 2},
    "maxProperties of a closed object": {
        "properties": {"a": {}, "b": {}, "c": {}},
        "additionalProperties": False,
        "maxProperties": 1,
    },
    "propertyNames by pattern": {"propertyNames": {"pattern": "^[ab]$"}, "properties": {"c": {}, "a": {"const": 1}}},
    "propertyNames by list": {"propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "integer"}},
    "propertyNames by exclusion": {"propertyNames": {"not": {"enum": ["a", "c"]}}},
    "propertyNames by length": {"propertyNames": {"minLength": 2}},
    "unevaluatedProperties": {
        "allOf": [{"properties": {"a": {}}}],
        "properties": {"b": {}},
        "unevaluatedProperties": False,
    },
    "unevaluatedItems": {"allOf": [{"prefixItems": [{}]}], "unevaluatedItems": {"type": "string"}},
    "a pattern for every name": {"patternProperties": {".*": {"type": "integer"}}},
    "a pattern and named ones": {
        "properties": {"a": {"minimum": 2}},
        "patternProperties": {"^[ab]$": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
    },
    "old exclusive bounds": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "minimum": 1,
        "exclusiveMinimum": True,
    },
    "old tuples": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{"type": "string"}],
        "additionalItems": {"type": "integer"},
    },
    "equal references of two resources": {
        "oneOf": [
            {"$id": "x", "$defs": {"v": {"const": 1}}, "properties": {"a": {"$ref": "#/$defs/v"}}, "required": ["a"]},
            {"$id": "y", "$defs": {"v": {"const": 2}}, "properties": {"a": {"$ref": "#/$defs/v"}}, "required": ["a"]},
        ],
        "type": "object",
    },
    "boolean schemas": {"properties": {"a": False, "b": True}},
    "a pattern is a search": {"pattern": "b"},
    "dot is no line break": {"pattern": "^a.$"},
    "recursion": {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "integer"}]}}},
}

REFUSED: dict[str, tuple[Any, str, str | None]] = {
    "no such type": ({"properties": {"a": {"type": "text"}}}, "invalid_schema", "/properties/a/type"),
    "no schema": ({"properties": {"a": 5}}, "invalid_schema", "/properties"),
    "empty enum": ({"enum": []}, "invalid_schema", "/enum"),
    "nothing satisfies": ({"allOf": [{"type": "string"}, {"type": "null"}]}, "invalid_schema", None),
    "false": (False, "invalid_schema", ""),
    "a circle": ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "invalid_schema", "/$defs/A/$ref"),
    "nowhere": ({"items": {"$ref": "#/$defs/A"}}, "invalid_schema", "/items/$ref"),
    "another document": ({"items": {"$ref": "other.json"}}, "unsupported_schema", "/items/$ref"),
    "another dialect": ({"$schema": "https://example.com/mine"}, "unsupported_schema", "/$schema"),
    "dynamic references": ({"items": {"$dynamicRef": "#x"}}, "unsupported_schema", "/items/$dynamicRef"),
    "look-around": ({"items": {"pattern": "^(?!a)"}}, "unsupported_schema", "/items/pattern"),
    "word borders": ({"pattern": r"\ba"}, "unsupported_schema", "/pattern"),
    "anchors within": ({"items": {"pattern": "^(a|b$)c"}}, "unsupported_schema", "/items/pattern"),
    "unbounded contains": ({"contains": {"const": 1}}, "unsupported_schema", "/contains"),
    "unbounded uniqueItems": ({"uniqueItems": True}, "unsupported_schema", "/uniqueItems"),
    "not items": ({"not": {"items": {"const": 1}}}, "unsupported_schema", "/not/anyOf/0/contains"),
    "not pattern": ({"not": {"pattern": "a"}}, "unsupported_schema", "/not/pattern"),
    "not integer": ({"not": {"type": "integer"}}, "unsupported_schema", "/not/type"),
    "oneOf of patterns": ({"oneOf": [{"pattern": "a"}, {"pattern": "b"}]}, "unsupported_schema", "/oneOf/1/pattern"),
    "counts of open objects": ({"minProperties": 2}, "unsupported_schema", "/minProperties"),
    "unevaluated beside anyOf": (
        {"anyOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
        "unsupported_schema",
        "/unevaluatedProperties",
    ),
    "a format that is not regular": ({"format": "idn-email"}, "unsupported_schema", "/format"),
    "characters that are never written": ({"const": "\x00"}, "unsupported_schema", "/const"),
}


def compile_schema(schema: Any) -> Any:
    return COMPILER.compile(JsonSchemaSpec(json.dumps(schema).encode()))


@pytest.mark.parametrize("name", EQUIVALENT)
def test_a_lowering_means_what_the_keyword_means(name: str) -> None:
    schema = EQUIVALENT[name]
    grammar = compile_schema(schema)
    assert not isinstance(grammar, GrammarRefusal), grammar
    validator = jsonschema_rs.validator_for(schema)
    agreed = [accepts(grammar, value, schema) == validator.is_valid(value) for value in POOL]
    assert [value for value, agrees in zip(POOL, agreed, strict=True) if not agrees] == []


@pytest.mark.parametrize("name", EQUIVALENT)
def test_what_a_machine_writes_satisfies_the_schema(name: str) -> None:
    schema = EQUIVALENT[name]
    grammar = compile_schema(schema)
    assert not isinstance(grammar, GrammarRefusal)
    validator = jsonschema_rs.validator_for(schema)
    for seed in range(8):
        text = random_text(COMPILER, WORDS, grammar, seed)
        assert text is None or validator.is_valid(json.loads(text)), text


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_enforced_is_refused_with_its_path(name: str) -> None:
    schema, kind, path = REFUSED[name]
    refusal = compile_schema(schema)
    assert isinstance(refusal, GrammarRefusal)
    assert (refusal.kind.value, refusal.path) == (kind, path)
    assert 0 < len(refusal.message) < 400
