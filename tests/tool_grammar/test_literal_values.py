"""Values as literals: Python's and those with marks and bare keys, as schemas allow them; and custom tools' texts."""

import json
from typing import Any

import pytest

from harness.parsed_output import parser_of, read_output
from harness.tool_walk import byte_vocabulary
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.inference.grammar_parts import PatternPart
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.tool_grammar import GrammarTool, tool_grammar

PLACE = "tools[0].function.parameters"
DEFINITIONS = {
    "Tree": {
        "type": "object",
        "properties": {"on": {"type": "boolean"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
        "required": ["on"],
        "additionalProperties": False,
    }
}


def schema_of(value: Any, **more: Any) -> dict[str, Any]:
    properties = {"v": value}
    return {
        "type": "object", "properties": properties, "required": ["v"], "additionalProperties": False,
        "$defs": DEFINITIONS, **more,
    }  # fmt: skip


def compiled(name: str, schema: Any, **tool: Any) -> Any:
    vocabulary = byte_vocabulary()
    tools = [GrammarTool("f", json.dumps(schema).encode(), is_strict=True, place=PLACE, **tool)]
    spec = tool_grammar(FAMILIES[name], tools, vocabulary.tokens, is_required=True, allows_many=False)
    assert spec is not None
    return vocabulary.compiler.compile(spec)


PYTHON: list[tuple[Any, list[tuple[str, Any]], list[str]]] = [
    ({"type": "boolean"}, [("True", True), ("False", False)], ["true", "1", '"True"']),
    ({"type": ["null", "integer"]}, [("None", None), ("-3", -3)], ["null", "1.5"]),
    ({"type": "string"}, [('"a\\n\\"b\\\\ é😀"', 'a\n"b\\ é😀'), ('"True"', "True")], ["'a'", "a", '"\n"']),
    ({"type": "string", "pattern": "^a+$", "maxLength": 3}, [('"aa"', "aa")], ['"b"', '"aaaa"']),
    ({"enum": ["a", 1, None, True, [1, None], {"k": False}]},
     [('"a"', "a"), ("1", 1), ("None", None), ("True", True), ("[1, None]", [1, None]), ('{"k": False}', {"k": False})],
     ["2", "False", "null"]),
    ({"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2},
     [("[True]", [True]), ("[True, False]", [True, False])], ["[]", "[True, False, True]", "[1]"]),
    ({"type": "array", "items": {"type": "string"}, "maxItems": 1}, [("[]", []), ('["a"]', ["a"])], ['["a","b"]']),
    ({"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "integer"}], "minItems": 2, "maxItems": 2},
     [("[True, 2]", [True, 2])], ["[True]", "[2, True]"]),
    ({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "integer"}}, "additionalProperties": False},
     [("{}", {}), ('{"a": None, "b": 2}', {"a": None, "b": 2}), ('{"b": 2}', {"b": 2})], ['{"c": 1}', '{"a": 1}']),
    ({"type": "object", "additionalProperties": {"type": "boolean"}}, [('{"x": True}', {"x": True})], ['{"x": 1}']),
    ({"$ref": "#/$defs/Tree"}, [('{"on": True, "kids": [{"on": False}]}', {"on": True, "kids": [{"on": False}]})],
     ['{"kids": []}']),
    ({"anyOf": [{"type": "boolean"}, {"type": "string"}]}, [("True", True), ('"x"', "x")], ["1"]),
    ({"oneOf": [{"type": "null"}, {"type": "number", "minimum": 1}]}, [("None", None), ("1.5", 1.5)], ["0"]),
    ({}, [('{"a": [True, None, {"b": -1.5e3}]}', {"a": [True, None, {"b": -1500.0}]}), ("None", None)], ["x", "("]),
]  # type: ignore[list-item]  # fmt: skip


@pytest.mark.parametrize(("schema", "right", "wrong"), PYTHON, ids=[str(i) for i in range(len(PYTHON))])
def test_python_literals_are_what_the_schema_allows(
    schema: Any, right: list[tuple[str, Any]], wrong: list[str]
) -> None:
    grammar = compiled("pythonic", schema_of(schema))
    assert not isinstance(grammar, GrammarRefusal), grammar
    for text, value in right:
        assert byte_vocabulary().accepts(grammar, f"[f(v={text})]"), text
        output = read_output(parser_of("pythonic", tools={"f": schema_of(schema)}), [f"[f(v={text})]"])
        assert output.calls == [("f", {"v": value})]
    for text in wrong:
        assert not byte_vocabulary().accepts(grammar, f"[f(v={text})]"), text


BRACES: list[tuple[Any, list[tuple[str, Any]], list[str]]] = [
    ({"type": "boolean"}, [("true", True)], ["True", "1"]),
    ({"type": "string"}, [('<escape>a"{}\n<escape>', 'a"{}\n'), ("<escape><escape>", "")], ["a", '"a"']),
    ({"type": "string", "pattern": "^a+$"}, [("<escape>aa<escape>", "aa")], ["<escape>b<escape>"]),
    ({"enum": ["a", None]}, [("<escape>a<escape>", "a"), ("null", None)], ["<escape>b<escape>", "a"]),
    ({"type": "array", "items": {"type": ["integer", "string"]}}, [("[1,<escape>x<escape>]", [1, "x"])], ["[1.5]"]),
    ({"$ref": "#/$defs/Tree"}, [("{on:true,kids:[{on:false}]}", {"on": True, "kids": [{"on": False}]})], ["{}"]),
    ({}, [("{a_b:[true,null,<escape>x<escape>]}", {"a_b": [True, None, "x"]})], ["x"]),
]  # type: ignore[list-item]


@pytest.mark.parametrize(("schema", "right", "wrong"), BRACES, ids=[str(i) for i in range(len(BRACES))])
def test_marked_literals_are_what_the_schema_allows(
    schema: Any, right: list[tuple[str, Any]], wrong: list[str]
) -> None:
    grammar = compiled("functiongemma", schema_of(schema))
    assert not isinstance(grammar, GrammarRefusal), grammar
    begin, end = "<start_function_call>call:f{v:", "}<end_function_call>"
    for text, value in right:
        assert byte_vocabulary().accepts(grammar, begin + text + end), text
        output = read_output(parser_of("functiongemma", tools={"f": schema_of(schema)}), [begin + text + end])
        assert output.calls == [("f", {"v": value})]
    for text in wrong:
        assert not byte_vocabulary().accepts(grammar, begin + text + end), text


REFUSED: list[tuple[str, Any, str]] = [
    ("pythonic", {"type": "array", "uniqueItems": True, "items": {"type": "boolean"}}, "/properties/v/uniqueItems"),
    ("pythonic", {"type": "object", "patternProperties": {"^x": {}}}, "/properties/v/patternProperties"),
    ("pythonic", {"not": {"type": "null"}}, "/properties/v/not"),
    ("pythonic", {"allOf": [{"type": "boolean"}, {"type": "boolean"}]}, "/properties/v/allOf"),
    ("pythonic", {"type": "array", "prefixItems": [{"type": "boolean"}]}, "/properties/v/prefixItems"),
    ("pythonic", {"type": "array", "items": {"type": "null", "minItems": 1, "if": {}}}, "/properties/v/items/if"),
    ("functiongemma", {"const": "a<escape>"}, "/properties/v/const"),
    ("functiongemma", {"type": "object", "properties": {"a:": {}}, "required": ["a:"]}, "/properties/v/properties/a:"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "schema", "path"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_cannot_be_kept_is_refused_with_its_path(name: str, schema: Any, path: str) -> None:
    refusal = compiled(name, schema_of(schema))
    assert isinstance(refusal, GrammarRefusal)
    assert (refusal.kind, refusal.path) == (RefusalKind.UNSUPPORTED_SCHEMA, PLACE + path)


def test_a_keyword_that_is_no_name_is_refused_where_it_must_be_there() -> None:
    schema = {"type": "object", "properties": {"a.b": {}}, "required": ["a.b"]}
    refusal = compiled("pythonic", schema)
    assert isinstance(refusal, GrammarRefusal)
    assert refusal.path == f"{PLACE}/properties/a.b"


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_text_of_a_custom_tool_matches_its_pattern(name: str) -> None:
    grammar = compiled(name, None, text=PatternPart("[0-9]{2}|abc", PLACE), text_key="port")
    assert not isinstance(grammar, GrammarRefusal), grammar
    example = FAMILIES[name].example.replace("tide_at", "f")
    for text, is_right in (("12", True), ("abc", True), ("1", False), ("abcd", False), ("Brest", False)):
        written = example.replace("Brest", text)
        assert byte_vocabulary().accepts(grammar, written) is is_right, written


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_text_of_a_custom_tool_may_be_free(name: str) -> None:
    grammar = compiled(name, None, text=PatternPart(""), text_key="port")
    assert not isinstance(grammar, GrammarRefusal), grammar
    example = FAMILIES[name].example.replace("tide_at", "f")
    assert byte_vocabulary().accepts(grammar, example)
    assert byte_vocabulary().accepts(grammar, example.replace("Brest", "é 12: a < b"))
    assert not byte_vocabulary().accepts(grammar, example.replace("port", "harbour"))
