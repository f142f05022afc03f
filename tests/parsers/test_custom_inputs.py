"""Calls of custom tools: their input is plain text, at every split, whatever the model wrote."""

import pytest

from harness.parsed_output import counting_ids, read_output
from tidegate.inference.event import ToolCallArguments, ToolCallStarted
from tidegate.parsers.build_parser import build_parser, family_named
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.parsers.parser import OutputParser
from tidegate.testing.check_parser import check_parser, parse_pieces

SCHEMA = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
TOOLS = OfferedTools([("free", SCHEMA), ("ping", None)], ["free"])


def parser(family: str = "hermes") -> OutputParser:
    return build_parser(family_named(family), TOOLS, counting_ids())


def call(arguments: str, name: str = "free") -> str:
    return f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'


INPUTS = [
    ('{"input": "a\\nb\\u00e9\\ud83d\\ude00 \\"c\\""}', 'a\nbé😀 "c"'),
    ('{ "input" : "" }', ""),
    ('{"input": "x", "more": 1}', "x"),
    ('{"code": "x"}', '{"code": "x"}'),
    ('{"input": 5}', '{"input": 5}'),
    ("[1]", "[1]"),
    ("{}", "{}"),
]


@pytest.mark.parametrize(("arguments", "text"), INPUTS, ids=[str(i) for i in range(len(INPUTS))])
def test_the_input_is_the_string_or_what_was_written_instead(arguments: str, text: str) -> None:
    assert read_output(parser(), [call(arguments)]).arguments == [text]
    check_parser(parser, [call(arguments), call(arguments) + call(arguments)])


def test_families_that_write_plain_values_give_the_same_text() -> None:
    written = '<tool_call>free<arg_key>input</arg_key><arg_value>a <b>\n"c"</arg_value></tool_call>'
    assert read_output(parser("glm45"), [written]).arguments == ['a <b>\n"c"']
    check_parser(lambda: parser("glm45"), [written])


def test_functions_beside_custom_tools_keep_their_arguments() -> None:
    events = parse_pieces(parser(), [call("{}", "ping") + call('{"input": "x"}')])
    starts = [event for event in events if isinstance(event, ToolCallStarted)]
    assert [(event.name, event.is_custom) for event in starts] == [("ping", False), ("free", True)]
    fragments = [event for event in events if isinstance(event, ToolCallArguments)]
    assert [(event.fragment, event.is_custom) for event in fragments] == [("{}", False), ("x", True)]


def test_an_input_cut_by_the_budget_shows_what_was_certain() -> None:
    assert read_output(
        parser(), ['<tool_call>{"name": "free", "arguments": {"input": "ab\\'], is_cut=True
    ).arguments == ["ab"]
