"""JSON Schemas that show one keyword each, with a question that pulls the model away from it.

The first group stays within what the public API's strict schemas may hold: closed objects whose members are all
required. Servers may refuse any of them; none may take one and break it.
"""

from dataclasses import dataclass
from typing import Any

from tidegate.conformance.catalog.tool_bodies import closed


@dataclass(frozen=True, slots=True)
class SchemaRow:
    """`right`: a text that keeps the schema, for engines that play scripts."""

    name: str
    what: str
    lure: str
    schema: Any
    right: str


_DIGIT = {"type": "integer", "minimum": 0, "maximum": 9}


def _word(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


_STRICT = (
    SchemaRow(
        "types",
        "types of members",
        "Write all values as words.",
        closed(on={"type": "boolean"}, n=_DIGIT, at={"type": "null"}),
        '{"on": true, "n": 3, "at": null}',
    ),
    SchemaRow(
        "enum",
        "enumerations",
        "The sky is purple. Which colour is it?",
        closed(colour=_word("ochre", "teal")),
        '{"colour": "teal"}',
    ),
    SchemaRow(
        "const",
        "constants",
        "Which version is the newest?",
        closed(version={"type": "string", "const": "v0.7-rc"}),
        '{"version": "v0.7-rc"}',
    ),
    SchemaRow(
        "required",
        "required members",
        "Give only the first part.",
        closed(first=_DIGIT, second=_DIGIT, third=_DIGIT),
        '{"first": 1, "second": 2, "third": 3}',
    ),
    SchemaRow(
        "closed", "no members beside those listed", "Add a note and an explanation.", closed(n=_DIGIT), '{"n": 4}'
    ),
    SchemaRow(
        "integer",
        "integers without a fraction",
        "What is pi?",
        closed(n={"type": "integer", "minimum": 3, "maximum": 4}),
        '{"n": 3}',
    ),
    SchemaRow(
        "minimum", "lower bounds", "Say 1.", closed(n={"type": "integer", "minimum": 70, "maximum": 79}), '{"n": 71}'
    ),
    SchemaRow(
        "exclusive",
        "exclusive bounds",
        "Say 5 or 7.",
        closed(n={"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 7}),
        '{"n": 6}',
    ),
    SchemaRow(
        "multiple",
        "multiples",
        "Say 13.",
        closed(n={"type": "integer", "multipleOf": 25, "minimum": 1, "maximum": 99}),
        '{"n": 75}',
    ),
    SchemaRow(
        "min_items",
        "a least number of items",
        "Name one colour only.",
        closed(c={"type": "array", "items": _word("red", "green"), "minItems": 3, "maxItems": 4}),
        '{"c": ["red", "green", "red"]}',
    ),
    SchemaRow(
        "max_items",
        "a greatest number of items",
        "Name twenty colours.",
        closed(c={"type": "array", "items": _word("red", "green"), "maxItems": 2}),
        '{"c": ["red", "green"]}',
    ),
    SchemaRow(
        "nested",
        "lists of lists of objects",
        "Write a table in Markdown.",
        closed(
            rows={
                "type": "array",
                "minItems": 1,
                "maxItems": 2,
                "items": {"type": "array", "minItems": 1, "maxItems": 1, "items": closed(n=_DIGIT)},
            }
        ),
        '{"rows": [[{"n": 1}], [{"n": 2}]]}',
    ),
    SchemaRow(
        "pattern",
        "patterns of texts",
        "What is your telephone number?",
        closed(code={"type": "string", "pattern": "^[A-F]{2}-[0-9]{3}$"}),
        '{"code": "BF-204"}',
    ),
    SchemaRow(
        "date",
        "the format of dates",
        "When is the first of May, in words?",
        closed(day={"type": "string", "format": "date"}),
        '{"day": "2027-05-01"}',
    ),
    SchemaRow(
        "date_time",
        "the format of instants",
        "What time is it, in words?",
        closed(at={"type": "string", "format": "date-time"}),
        '{"at": "2027-05-01T12:30:00Z"}',
    ),
    SchemaRow(
        "uuid",
        "the format of UUIDs",
        "Name the thing.",
        closed(id={"type": "string", "format": "uuid"}),
        '{"id": "0b5a7c1e-6f3d-4e2a-9c8b-7d6e5f4a3b2c"}',
    ),
    SchemaRow(
        "ipv4",
        "the format of IPv4 addresses",
        "What is the name of the host?",
        closed(host={"type": "string", "format": "ipv4"}),
        '{"host": "192.0.2.7"}',
    ),
    SchemaRow(
        "any_of",
        "alternatives",
        "Answer yes.",
        closed(v={"anyOf": [_word("on", "off"), {"type": "integer", "minimum": 10, "maximum": 12}]}),
        '{"v": 11}',
    ),
    SchemaRow(
        "nullable",
        "null as a further type",
        "Write the word null.",
        closed(v={"type": ["integer", "null"], "minimum": 1, "maximum": 2}),
        '{"v": null}',
    ),
    SchemaRow(
        "ref",
        "references",
        "Describe two points in prose.",
        closed(a={"$ref": "#/$defs/point"}, b={"$ref": "#/$defs/point"})
        | {"$defs": {"point": closed(x=_DIGIT, y=_DIGIT)}},
        '{"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 4}}',
    ),
    SchemaRow(
        "recursion",
        "schemas that refer to themselves",
        "Describe a tree in prose.",
        closed(n=_DIGIT, next={"anyOf": [{"$ref": "#"}, {"type": "null"}]}),
        '{"n": 1, "next": {"n": 2, "next": null}}',
    ),
    SchemaRow(
        "unicode_names",
        "names of any script",
        "Write the names in English.",
        closed(**{"größe": _DIGIT, "色\U0001f30a": _word("青")}),
        '{"größe": 3, "色\U0001f30a": "青"}',
    ),
    SchemaRow(
        "escaped_names",
        "names with quotes and backslashes",
        "Write simple names.",
        closed(**{'a "b"': _DIGIT, "c\\d": _DIGIT}),
        '{"a \\"b\\"": 3, "c\\\\d": 4}',
    ),
)

_WIDER = (
    SchemaRow(
        "min_length",
        "a least length of texts",
        "Say one short word.",
        closed(t={"type": "string", "minLength": 12, "maxLength": 16}),
        '{"t": "twelve or more"}',
    ),
    SchemaRow(
        "max_length",
        "a greatest length of texts",
        "Tell a long story.",
        closed(t={"type": "string", "maxLength": 5}),
        '{"t": "brief"}',
    ),
    SchemaRow(
        "one_of",
        "exactly one alternative",
        "Say 20.",
        closed(
            n={
                "oneOf": [
                    {"type": "integer", "minimum": 0, "maximum": 20},
                    {"type": "integer", "minimum": 20, "maximum": 29},
                ]
            }
        ),
        '{"n": 25}',
    ),
    SchemaRow(
        "all_of",
        "several schemas at once",
        "Say 3.",
        closed(n={"allOf": [{"type": "integer", "minimum": 5}, {"type": "integer", "maximum": 8}]}),
        '{"n": 6}',
    ),
    SchemaRow(
        "not",
        "what must not be",
        "Say 5.",
        closed(n={"type": "integer", "minimum": 4, "maximum": 6, "not": {"enum": [5]}}),
        '{"n": 4}',
    ),
    SchemaRow(
        "prefix_items",
        "items by their place",
        "Name three numbers.",
        closed(p={"type": "array", "prefixItems": [_DIGIT, {"type": "boolean"}], "items": False, "minItems": 2}),
        '{"p": [3, true]}',
    ),
    SchemaRow(
        "unique",
        "items that differ",
        "Say red twice.",
        closed(c={"type": "array", "items": _word("red", "green"), "minItems": 2, "maxItems": 2, "uniqueItems": True}),
        '{"c": ["red", "green"]}',
    ),
    SchemaRow(
        "pattern_properties",
        "names by pattern",
        "Use names that are words.",
        {
            "type": "object",
            "patternProperties": {"^x_[0-9]$": _DIGIT},
            "additionalProperties": False,
            "required": ["x_1"],
        },
        '{"x_1": 3}',
    ),
    SchemaRow(
        "map",
        "values of names that are free",
        "Write all numbers as words.",
        {"type": "object", "additionalProperties": _DIGIT, "required": ["a"]},
        '{"a": 3, "b": 4}',
    ),
    SchemaRow(
        "dependent",
        "members that need others",
        "Give the card only.",
        {
            "type": "object",
            "properties": {"card": _DIGIT, "name": _word("ada")},
            "required": ["card"],
            "dependentRequired": {"card": ["name"]},
            "additionalProperties": False,
        },
        '{"card": 3, "name": "ada"}',
    ),
    SchemaRow(
        "if_then",
        "conditions",
        "Say it is open, without an hour.",
        {
            "type": "object",
            "properties": {"open": {"const": True}, "hour": _DIGIT},
            "required": ["open"],
            "additionalProperties": False,
            "if": {"properties": {"open": {"const": True}}},
            "then": {"required": ["hour"]},
        },
        '{"open": true, "hour": 8}',
    ),
    SchemaRow(
        "root_list",
        "a list as the whole answer",
        "Answer with an object.",
        {"type": "array", "items": _DIGIT, "minItems": 1, "maxItems": 3},
        "[1, 2]",
    ),
    SchemaRow("root_word", "a text as the whole answer", "Answer with an object.", _word("yes", "no"), '"no"'),
)

ROWS: tuple[SchemaRow, ...] = _STRICT + _WIDER
STREAMED = ("enum", "nested", "pattern", "unicode_names", "max_items")
"""Rows that are asked for in streams as well."""


def row_of(name: str) -> SchemaRow:
    """Returns the row."""
    return next(row for row in ROWS if row.name == name)
