"""Every family of tool formats: its example, its rules, hostile text, and work that is linear."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.parsed_output import TOOLS, counting_ids, parser_of, read_output
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.format_page import write_page
from tidegate.parsers.offered_tools import MAX_LOOKS, OfferedTools, ToolSchema
from tidegate.parsers.tool_format import JsonCalls, NamedJsonCalls, ToolFormat
from tidegate.parsers.tool_parser import ToolParser
from tidegate.testing.check_parser import check_parser, parse_pieces
from tidegate.testing.partitions import cut_at

NAMES = sorted(FAMILIES)
WRITTEN_AS_JSON = {name for name in NAMES if isinstance(FAMILIES[name].style, JsonCalls | NamedJsonCalls)} | {"harmony"}


def read_all(parser: ToolParser, pieces: list[str]) -> None:
    for piece in pieces:
        parser.feed(piece)
    parser.finish()


def fragments_of(form: ToolFormat) -> list[str]:
    """Pieces of the family's markup, whole and broken, and what its readers look for."""
    example = form.example
    marks = [*form.opens, *form.closes, *(form.section or ()), *form.dropped, example]
    marks += [example[:at] for at in range(1, len(example), 5)] + [example[at:] for at in range(1, len(example), 5)]
    for attribute in form.style.__dataclass_fields__:
        value = getattr(form.style, attribute)
        marks += (
            [value] if isinstance(value, str) else [mark for mark in value if mark] if isinstance(value, tuple) else []
        )
    words = (
        '{ } [ ] " \\ , : ( ) = ; \n < </ tide_at ping nope port day 12 -1. True null \\u \\ud83d é😀 ping() ping(a=1'
    )
    return [*filter(None, marks), *words.split(" "), " ", '{"name": "ping", "arguments": {}}', '"arguments": "{']


@pytest.mark.parametrize("name", NAMES)
def test_the_example_is_one_call_at_every_split(name: str) -> None:
    example = FAMILIES[name].example
    output = read_output(parser_of(name), [example])
    assert (output.calls, output.content) == ([("tide_at", {"port": "Brest"})], "")
    check_parser(lambda: parser_of(name), [example])


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_that_was_not_offered_is_content_byte_for_byte(name: str) -> None:
    example = FAMILIES[name].example
    assert read_output(parser_of(name, tools={"ping": TOOLS["ping"]}), [example]).content == example
    check_parser(lambda: parser_of(name, tools={"ping": TOOLS["ping"]}), [example])


@pytest.mark.parametrize("name", NAMES)
def test_a_call_cut_anywhere_shows_no_opening_as_content_when_the_budget_ended_it(name: str) -> None:
    form = FAMILIES[name]
    for at in range(1, len(form.example)):
        text = form.example[:at]
        cut = read_output(parser_of(name), [text], is_cut=True)
        natural = read_output(parser_of(name), [text])
        assert cut.names == natural.names
        if natural.names:
            assert cut.content == ""
            continue
        assert natural.content == text
        assert len(cut.content) * 2 <= max(map(len, (*form.opens, *(form.section or ()), "<|message|>")))


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_hostile_text_never_raises_and_splits_alike(name: str, data: st.DataObject) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(fragments_of(FAMILIES[name])), max_size=10)))
    places = data.draw(st.lists(st.integers(0, len(text)), max_size=5))
    is_cut = data.draw(st.booleans())
    whole = parse_pieces(parser_of(name), [text], is_cut=is_cut)
    assert parse_pieces(parser_of(name), list(text), is_cut=is_cut) == whole
    assert parse_pieces(parser_of(name), cut_at(text, places), is_cut=is_cut) == whole
    if name not in WRITTEN_AS_JSON and not is_cut:
        for arguments in read_output(parser_of(name), [text]).arguments:
            assert isinstance(json.loads(arguments), dict)


@pytest.mark.parametrize("name", NAMES)
def test_work_is_linear_in_hostile_text(name: str) -> None:  # SEC-26
    form = FAMILIES[name]
    opening = (form.section or ("",))[0] + (form.opens or (form.bare_starts[:1] or "<|start|>",))[0]
    head = form.example[: form.example.index("Brest")]
    for start, unit in (("", opening), ("", opening[:-1] + '"'), (head, "<"), (head, "\\"), ("", head)):
        for size in (1 << 12, 1 << 14):
            text = (start + unit * (size // len(unit) + 1))[:size]
            for pieces in ([text], cut_at(text, range(0, size, 5))):
                parser = ToolParser(form, OfferedTools(TOOLS.items()), counting_ids())
                read_all(parser, pieces)
                assert parser.num_scanned <= 3 * size, (start, unit)


def test_a_mebibyte_of_openings_costs_the_same_for_each_character() -> None:  # SEC-26
    size = 1 << 20
    for unit in ("<tool_call>", '<tool_call>{"name": "ping", "arguments": [', '"\\'):
        parser = ToolParser(FAMILIES["hermes"], OfferedTools(TOOLS.items()), counting_ids())
        read_all(parser, [(unit * (size // len(unit) + 1))[:size]])
        assert parser.num_scanned <= 3 * size


TYPED: list[tuple[dict[str, Any], str, Any]] = [
    ({"type": "string"}, "03106", "03106"),
    ({"type": "string"}, "null", "null"),
    ({"type": "integer"}, "42", 42),
    ({"type": "integer"}, "042", "042"),
    ({"type": ["integer", "null"]}, "null", None),
    ({"type": "boolean"}, "False", False),
    ({"anyOf": [{"type": "string"}, {"type": "object"}]}, '{"a": 1}', {"a": 1}),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "none at all", "none at all"),
    ({"$ref": "#/$defs/W"}, "[1, 2]", [1, 2]),
    ({"$ref": "#/nowhere"}, "x", "x"),
    ({"enum": ["1", "2"]}, "1", "1"),
    ({"type": "object"}, '{"a": }', '{"a": }'),
    ({"type": "array"}, "[" * 100_000, "[" * 100_000),
    ({}, "1.50", 1.5),
]


@pytest.mark.parametrize(("schema", "text", "value"), TYPED, ids=[str(i) for i in range(len(TYPED))])
def test_a_text_value_takes_the_type_of_its_schema(schema: dict[str, Any], text: str, value: Any) -> None:
    tools = {"f": {"type": "object", "properties": {"x": schema}, "$defs": {"W": {"type": "array"}}}}
    written = f"<tool_call>f<arg_key>x</arg_key><arg_value>{text}</arg_value></tool_call>"
    assert read_output(parser_of("glm45", tools=tools), [written]).calls == [("f", {"x": value})]


def test_a_schema_is_looked_at_so_far_and_no_further() -> None:
    endless = {"anyOf": [{"$ref": "#/$defs/E"}, {"$ref": "#/$defs/E"}]}
    schema = ToolSchema({"properties": {"x": {"$ref": "#/$defs/E"}}, "$defs": {"E": endless}})
    assert schema.to_json("x", "1") == "1"
    deep = {"anyOf": [{"type": "string"}] * (MAX_LOOKS + 50)}
    last = {"anyOf": [{"type": "integer"}, *deep["anyOf"]]}
    assert ToolSchema({"properties": {"x": last}}).types_of("x") == {"string"}


RULES: list[tuple[str, str, str, list[tuple[str, str]]]] = [
    ("hermes", '<tool_call>{"name": "ping", "arguments": {"a": NaN}}</tool_call>', "", [("ping", '{"a": NaN}')]),
    ("hermes", '<tool_call>{"name": "ping", "arguments": {"a": 1}</tool_call>.', ".", [("ping", '{"a": 1}')]),
    ("hermes", '<tool_call>{"name": "ping"}</tool_call>\n', "", [("ping", "{}")]),
    ("hermes", '<tool_call>{"name": "ping", "arguments": null}</tool_call>', "", [("ping", "{}")]),
    ("hermes", 'a<tool_call> x <tool_call>{"name": "ping"}</tool_call>', "a<tool_call> x ", [("ping", "{}")]),
    (
        "hermes",
        '<tool_call>{"name": "nope", "arguments": {"a": "<tool_call>{\\"name\\": \\"ping\\"}"}}</tool_call>',
        '<tool_call>{"name": "nope", "arguments": {"a": "<tool_call>{\\"name\\": \\"ping\\"}"}}</tool_call>',
        [],
    ),
    ("jamba", '<tool_calls>[{"name": "ping"}, {"name": "nope"}, {"name": "ping"}]</tool_calls>', ', {"name": "nope"}',
     [("ping", "{}"), ("ping", "{}")]),
    ("granite", "<tool_call>[1, 2]", "<tool_call>[1, 2]", []),
    ("llama3_json", '{"name": "ping", "parameters": {}}; {"name": "ping", "parameters": {"a": 1}}', "",
     [("ping", "{}"), ("ping", '{"a": 1}')]),
    ("llama3_json", '{"name": "ping", "age": 3}', '{"name": "ping", "age": 3}', []),
    ("pythonic", "[1, 2]", "[1, 2]", []),
    ("pythonic", "[ping(1)]", "[ping(1)]", []),
    ("pythonic", "[ping(x={'a': {}, 'b': [{}]}, y={})]", "", [("ping", '{"x": {"a": {}, "b": [{}]}, "y": {}}')]),
    ("gemma4", "<|tool_call>call:ping{a:{b:{},c:1}}<tool_call|>", "", [("ping", '{"a": {"b": {}, "c": 1}}')]),
    ("pythonic", "[ping(from=-1., x=(1,), y={1: 'a'})]", "", [("ping", '{"from": -1.0, "x": [1], "y": {"1": "a"}}')]),
    ("command_a", "<|START_RESPONSE|>Hi<|END_RESPONSE|>", "Hi", []),
    ("mistral", '[TOOL_CALLS]ping[CALL_ID]abc123def[ARGS]{"a": 1}', "", [("ping", '{"a": 1}')]),
    ("mistral", 'Ok[TOOL_CALLS]ping{"a": 1}', "Ok", [("ping", '{"a": 1}')]),
    ("harmony", "<|channel|>commentary<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B", "AB", []),
    ("harmony", " to=functions.ping<|channel|>commentary<|message|>{}<|call|>", "", [("ping", "{}")]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "content", "calls"), RULES, ids=[f"{i}-{r[0]}" for i, r in enumerate(RULES)])
def test_a_rule_holds_at_every_split(name: str, text: str, content: str, calls: list[tuple[str, str]]) -> None:
    output = read_output(parser_of(name), [text])
    assert (output.content, list(zip(output.names, output.arguments, strict=True))) == (content, calls)
    check_parser(lambda: parser_of(name), [text])


def test_an_id_of_the_format_is_kept_and_never_used_twice() -> None:
    text = "<|tool_call_begin|>functions.ping:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
    assert read_output(parser_of("kimi_k2"), [text, text]).ids == ["functions.ping:0", "call_0"]
    assert read_output(parser_of("mistral"), ["[TOOL_CALLS]ping[CALL_ID]abc123def[ARGS]{}"]).ids == ["abc123def"]


def test_markup_in_open_reasoning_is_no_call() -> None:
    call = FAMILIES["hermes"].example
    output = read_output(parser_of("hermes", "qwen3"), [f"<think>{call}"])
    assert (output.reasoning, output.calls, output.content) == (call, [], "")
    after = read_output(parser_of("hermes", "deepseek_r1"), [f"<think>a</think>\r\n\n{call}"])
    assert (after.reasoning, after.content, len(after.calls)) == ("a", "", 1)


def test_the_page_of_formats_is_current() -> None:
    page = Path(__file__).parents[2] / "docs/tool_formats.md"
    assert page.read_text("utf-8") == write_page()
