"""Values in tags: raw text that a schema allows and a reader takes as it was meant; everything else is refused."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.parsed_output import parser_of, read_output
from harness.tool_walk import byte_vocabulary
from tidegate.grammar.composite.raw_text import read_types
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.offered_tools import ToolSchema
from tidegate.parsers.tool_grammar import GrammarTool, tool_grammar

PLACE = "tools[0].function.parameters"


def schema_of(value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"v": value}, "required": ["v"], "additionalProperties": False, **more}


def compiled(name: str, schema: Any) -> Any:
    vocabulary = byte_vocabulary()
    tools = [GrammarTool("f", json.dumps(schema).encode(), is_strict=True, place=PLACE)]
    spec = tool_grammar(FAMILIES[name], tools, vocabulary.tokens, is_required=True, allows_many=False)
    assert spec is not None
    return vocabulary.compiler.compile(spec)


def written(name: str, text: str) -> str:
    match name:
        case "qwen3_coder":
            return f"<tool_call>\n<function=f>\n<parameter=v>\n{text}\n</parameter>\n</function>\n</tool_call>"
        case "seed_oss":
            return f"<seed:tool_call>\n<function=f>\n<parameter=v>{text}</parameter>\n</function>\n</seed:tool_call>"
    return f"<tool_call>f\n<arg_key>v</arg_key>\n<arg_value>{text}</arg_value>\n</tool_call>"


STRING = {"type": "string"}
VALUES: list[tuple[Any, list[tuple[str, Any]], list[str]]] = [
    (STRING, [("", ""), ("null", "null"), ("12", "12"), ("a\nb", "a\nb"), ("</b>", "</b>"), ("é😀", "é😀")], []),
    ({**STRING, "minLength": 2, "maxLength": 3}, [("ab", "ab"), ("é😀x", "é😀x")], ["a", "abcd"]),
    ({**STRING, "pattern": "^[a-c]+$"}, [("abc", "abc")], ["", "abd", "abc "]),
    ({**STRING, "pattern": "b+"}, [("abba", "abba")], ["aa"]),
    ({**STRING, "pattern": "^a|z$"}, [("ab", "ab"), ("bz", "bz")], ["bzb"]),
    ({**STRING, "format": "date"}, [("2024-02-29", "2024-02-29")], ["2023-02-29", "today"]),
    ({**STRING, "format": "uuid"}, [("12345678-1234-1234-1234-123456789abc",) * 2], ["12345678"]),
    ({"enum": ["a", "b c", "é"]}, [("b c", "b c"), ("é", "é")], ["b", "c"]),
    ({"const": "x/y"}, [("x/y", "x/y")], ["x"]),
    ({"type": "integer"}, [("3", 3), ("-12", -12)], ["3.5", "x", '"3"', ""]),
    ({"type": "number", "minimum": 2}, [("2.5", 2.5)], ["1", "two"]),
    ({"type": "boolean"}, [("true", True)], ["yes", "1"]),
    ({"type": ["string", "null"]}, [("null", None), ("nul", "nul"), ("12", "12")], [" null"]),
    ({"type": ["string", "integer"]}, [("12", 12), ("12a", "12a"), ("x", "x")], [" 12"]),
    ({"type": ["string", "integer"], "maximum": 5}, [("3", 3), ("x", "x")], ["6", "6a"]),
    ({"type": ["string", "boolean"], "maxLength": 3}, [("true", True), ("tru", "tru")], ["trues"]),
    ({"enum": ["a", 1, None, True]}, [("a", "a"), ("1", 1), ("null", None), ("true", True)], ["false", "2", "b"]),
    ({"enum": ["1", 1]}, [("1", 1)], ["2"]),
    ({"anyOf": [STRING, {"type": "array", "items": {"type": "integer"}}]}, [("[1]", [1]), ("x", "x")], ["[", '["a"]']),
    ({"type": "array", "items": STRING}, [('["a < b", "</b>"]', ["a < b", "</b>"])], ["a", '[""', "[1]"]),
    ({"type": "object"}, [('{"a": {"b": [null, "x"]}}', {"a": {"b": [None, "x"]}})], ["{", "[]", "x"]),
    ({"allOf": [{"maxLength": 3}, STRING]}, [("abc", "abc")], ["abcd"]),
    ({"oneOf": [{"type": "null"}, {**STRING, "pattern": "^z"}]}, [("null", None), ("z", "z")], ["y"]),
    ({"$ref": "#/$defs/S"}, [("ab", "ab")], ["abc"]),
    ({}, [("anything", "anything"), ("12", 12)], []),
]  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["qwen3_coder", "seed_oss", "glm45"])
@pytest.mark.parametrize(("schema", "right", "wrong"), VALUES, ids=[str(i) for i in range(len(VALUES))])
def test_raw_text_is_what_the_schema_allows(
    name: str, schema: Any, right: list[tuple[str, Any]], wrong: list[str]
) -> None:
    whole = schema_of(schema, **{"$defs": {"S": {"type": "string", "maxLength": 2}}})
    grammar = compiled(name, whole)
    assert not isinstance(grammar, GrammarRefusal), grammar
    for text, value in right:
        assert byte_vocabulary().accepts(grammar, written(name, text)), text
        assert read_output(parser_of(name, tools={"f": whole}), [written(name, text)]).calls == [("f", {"v": value})]
    for text in wrong:
        assert not byte_vocabulary().accepts(grammar, written(name, text)), text


ENDS = [
    ("qwen3_coder", STRING, ["a</parameter>b", "a\n</function>b", "a\n<parameter=w>\nx"]),
    ("qwen3_coder", {"type": "array", "items": STRING}, ['["</parameter>"]', '["x</parameter>y"]']),
    ("qwen3_coder", {"type": "object"}, ['{"</parameter>": 1}', '{"a": ["</parameter>"]}']),
    ("qwen3_coder", {}, ["</parameter>", '{"</parameter>": 1}']),
    ("seed_oss", STRING, ["\na", "a\n", "</parameter>"]),
    ("glm45", STRING, ["</arg_value>", "a</arg_value>b"]),
]


@pytest.mark.parametrize(("name", "schema", "texts"), ENDS, ids=[str(i) for i in range(len(ENDS))])
def test_a_value_never_holds_what_a_reader_takes_for_its_end(name: str, schema: Any, texts: list[str]) -> None:
    grammar = compiled(name, schema_of(schema))
    assert not isinstance(grammar, GrammarRefusal), grammar
    assert [text for text in texts if byte_vocabulary().accepts(grammar, written(name, text))] == []


REFUSED: list[tuple[Any, str]] = [
    (schema_of({"type": "string", "not": {"const": "a"}}), "/properties/v/not"),
    (schema_of({"type": "string", "format": "email"}), "/properties/v/format"),
    (schema_of({"type": "string", "pattern": r"a\b"}), "/properties/v/pattern"),
    (schema_of({"type": "string", "pattern": "(^a)b"}), "/properties/v/pattern"),
    (schema_of({"oneOf": [STRING, {**STRING, "maxLength": 2}]}), "/properties/v/oneOf/1"),
    (schema_of({"type": "array", "uniqueItems": True}), "/properties/v/uniqueItems"),
    (schema_of({"type": "array", "items": {"const": "</parameter>"}}), "/properties/v"),
    (schema_of(STRING, dependentRequired={"v": ["w"]}), "/dependentRequired"),
    (schema_of(STRING, patternProperties={"^x": {}}), "/patternProperties"),
    (schema_of(STRING, minProperties=3), "/minProperties"),
    ({"anyOf": [schema_of(STRING)]}, "/anyOf"),
    ({"type": "object", "properties": {"a<b": {}}, "required": ["a<b"]}, "/properties/a<b"),
]


@pytest.mark.parametrize(("schema", "path"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_cannot_be_kept_is_refused_with_its_path(schema: Any, path: str) -> None:
    refusal = compiled("qwen3_coder", schema)
    assert isinstance(refusal, GrammarRefusal)
    assert (refusal.kind, refusal.path) == (RefusalKind.UNSUPPORTED_SCHEMA, PLACE + path)


def test_a_name_that_cannot_be_written_is_left_out_where_it_may_be() -> None:
    schema = {"type": "object", "properties": {"a<b": {}, "v": STRING}, "additionalProperties": False}
    assert byte_vocabulary().accepts(compiled("qwen3_coder", schema), written("qwen3_coder", "x"))


LEAVES = st.sampled_from([
    {}, True, {"type": "string"}, {"type": ["integer", "null"]}, {"enum": ["a", 1]}, {"const": None}, {"const": 1.5},
    {"$ref": "#/$defs/A"}, {"$ref": "#/nowhere"}, {"$ref": "#name"}, {"type": "array"}, {"minLength": 2},
])  # fmt: skip
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.dictionaries(
        st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, min_size=1, max_size=3), max_size=2
    ),
    max_leaves=8,
)


@given(SCHEMAS, SCHEMAS)
@settings(max_examples=150, deadline=None)
def test_grammar_and_parser_read_the_same_types_from_a_schema(schema: Any, definition: Any) -> None:
    root = {"type": "object", "properties": {"v": schema}, "$defs": {"A": definition}}
    assert read_types(root, schema) == ToolSchema(root).types_of("v")


def test_types_are_looked_for_as_far_as_the_parser_looks() -> None:
    for schema in (
        {"anyOf": [{"type": "integer"}, *[{"type": "string"}] * 250]},
        {"anyOf": [{"$ref": "#/$defs/E"}] * 3},
    ):
        root = {"properties": {"v": schema}, "$defs": {"E": {"anyOf": [{"$ref": "#/$defs/E"}] * 2}}}
        assert read_types(root, schema) == ToolSchema(root).types_of("v")
