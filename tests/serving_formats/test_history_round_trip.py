"""For every real template whose format is known: what was called, rendered as history, is read back as the same call.

A model sees its own earlier calls only through the template. If they looked different from what it writes, or could not
be read by the parser that reads its output, it would be taught to write something else.
"""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.parsed_output import Output, counting_ids, read_output
from harness.real_templates import UNUSABLE, compiled, sources
from tidegate.errors import InvalidTemplateInput
from tidegate.parsers.build_parser import build_parser
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.serving.output_formats import OutputFormats, choose_formats, view_templates
from tidegate.text.chat_template import ChatInput

DATE = datetime(2026, 1, 2, tzinfo=UTC)
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "Text."},
        "number": {"type": "integer", "description": "A number."},
        "flag": {"type": "boolean", "description": "A flag."},
        "words": {"type": "array", "items": {"type": "string"}, "description": "Words."},
        "deep": {"type": "object", "description": "An object."},
    },
    "required": [],
}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": SCHEMA}}
    for name in ("first_tool", "second-tool")
]
USER = {"role": "user", "content": "hello"}
FORMATS: dict[str, OutputFormats] = {
    name: choose_formats(view_templates([sources()[name]], compiled(name))) for name in sources().keys() - UNUSABLE
}
RENDERS_NO_CALLS = {"SmolLM3-3B", "ibm-granite-granite-3.3-2B-Instruct.jinja", "Hammer2.1"}
CALLING = sorted(name for name, form in FORMATS.items() if form.tool is not None and name not in RENDERS_NO_CALLS)
PRINTS_PYTHON = {"ByteDance-Seed-OSS.jinja", "StepFun3.5-Flash.jinja", "Qwen3-Coder.jinja"}
"""They print true as True, and lists as Python does, in tags: what was meant is seen from the tool's schema."""
EASY = {"text": "São Paulo \u2014 \U0001f30a", "number": -7, "flag": True}
HARD = {"text": "a \"b\" \\ 'c' {d} <e>\n\tf", "words": ["x, y", "z"], "deep": {"k": {"l": [1, None, "m"]}}}

plain_text = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | plain_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain_text, inner, max_size=3),
    max_leaves=6,
)
arguments_of_any_kind = st.fixed_dictionaries(
    {},
    optional={
        "text": plain_text,
        "number": st.integers(-(10**9), 10**9),
        "flag": st.booleans(),
        "words": st.lists(plain_text, max_size=3),
        "deep": st.dictionaries(plain_text, json_values, max_size=3),
    },
)


def calling(*calls: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_abcdefghijklmnop{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
            }
            for number, (name, arguments) in enumerate(calls)
        ],
        **more,
    }


def render(name: str, messages: list[dict[str, Any]], **more: Any) -> str:
    chat = ChatInput(messages, TOOLS, **more)
    return compiled(name).select(has_tools=True).render(chat, date=DATE).text


def read_turn(name: str, turn: dict[str, Any]) -> Output:
    """Renders a conversation that ends with `turn`, and reads what comes behind the user's words."""
    text = render(name, [USER, turn], add_generation_prompt=False)
    for wants_prompt in (True, False):
        before = render(name, [USER], add_generation_prompt=wants_prompt)
        if text.startswith(before):
            said = text[len(before) :]
            break
    else:
        said = text.rpartition("hello")[2]
    formats = FORMATS[name]
    tools = OfferedTools((tool["function"]["name"], SCHEMA) for tool in TOOLS)  # type: ignore[index, misc]
    parser = build_parser(formats.tool, tools, counting_ids())
    return read_output(parser, [said])


@pytest.mark.parametrize("name", CALLING)
@pytest.mark.parametrize("arguments", [{}, EASY, HARD], ids=["none", "easy", "hard"])
def test_a_rendered_call_is_read_back(name: str, arguments: dict[str, Any]) -> None:
    assert read_turn(name, calling(("first_tool", arguments))).calls == [("first_tool", arguments)]


@pytest.mark.parametrize("name", CALLING)
@settings(max_examples=12, deadline=None, database=None, derandomize=True)
@given(arguments=arguments_of_any_kind)
def test_any_arguments_are_read_back(name: str, arguments: dict[str, Any]) -> None:
    assert read_turn(name, calling(("first_tool", arguments))).calls == [("first_tool", arguments)]


def result(call_id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def test_the_templates_that_render_no_calls_are_known() -> None:
    for name in RENDERS_NO_CALLS:
        assert "otter-R2" not in render(name, [USER, calling(("first_tool", {"text": "otter-R2"}))])


@pytest.mark.parametrize("name", CALLING)
def test_several_calls_and_their_results_stand_in_order_whatever_their_order_in_the_request(name: str) -> None:
    turn = calling(("first_tool", {"text": "otter-R2"}), ("second-tool", {"text": "heron-T5"}))
    first, second = (call["id"] for call in turn["tool_calls"])
    text = render(name, [USER, turn, result(second, "said-2"), result(first, "said-1")])
    places = [text.index(word) for word in ("otter-R2", "said-1", "said-2")]
    assert places == sorted(places)
    assert text.index("otter-R2") < text.index("heron-T5") < text.index("said-2")
    assert "None" not in text


@pytest.mark.parametrize("name", CALLING)
@pytest.mark.parametrize("call_id", ["c1", "a1B2c3D4e", "call_abc-DEF_0123456789xyz", "functions.first_tool:0", "ü"])
def test_any_id_that_a_client_replays_is_accepted(name: str, call_id: str) -> None:
    turn = calling(("first_tool", {"text": "otter-R2"}))
    turn["tool_calls"][0]["id"] = call_id
    assert "said-1" in render(name, [USER, turn, result(call_id, "said-1")])


@pytest.mark.parametrize("name", CALLING)
def test_deprecated_calls_and_custom_ones_render_as_ordinary_calls(name: str) -> None:
    legacy = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "first_tool", "arguments": '{"text": "a"}'},
    }
    answer = {"role": "function", "name": "first_tool", "content": "said-1"}
    modern = calling(("first_tool", {"text": "a"}))
    modern["tool_calls"][0]["id"] = "call_0"
    expected = render(name, [USER, modern, result("call_0", "said-1")])
    assert render(name, [USER, legacy, answer]) == expected
    custom = {"id": "call_0", "type": "custom", "custom": {"name": "first_tool", "input": "a"}}
    turn = {"role": "assistant", "content": None, "tool_calls": [custom]}
    same = calling(("first_tool", {"input": "a"}))
    same["tool_calls"][0]["id"] = "call_0"
    assert render(name, [USER, turn, result("call_0", "x")]) == render(name, [USER, same, result("call_0", "x")])


SHOWS_REASONING = sorted(
    name for name in CALLING if compiled(name).select(has_tools=True).capabilities.reasoning_field is not None
)
DROPS_IN_HISTORY = {"Apriel-1.6-15b-Thinker-fixed.jinja"}
"""Shows the reasoning of the last turn only, which in a request is never the assistant's with a result to come."""


@pytest.mark.parametrize("name", SHOWS_REASONING)
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_the_reasoning_of_a_tool_loop_reaches_templates_that_show_it(name: str, field: str) -> None:
    turn = calling(("first_tool", {"text": "a"}), **{field: "heron-T5"})
    text = render(name, [USER, turn, result(turn["tool_calls"][0]["id"], "said-1")])
    assert ("heron-T5" in text) is (name not in DROPS_IN_HISTORY)
    assert text.count("heron-T5") <= 1


def test_most_reasoning_templates_show_it() -> None:
    assert len(SHOWS_REASONING) == 20


REFUSES_THESE_MESSAGES = {"firefunction-v1", *(name for name in FORMATS if name.startswith("c4ai-command-r-v01"))}
"""The latter wants members in the schemas of tools that others leave out."""


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_reasoning_and_missing_content_never_break_or_leak_into_a_template(name: str) -> None:
    said = {"role": "assistant", "content": None, "reasoning_content": "heron-T5"}
    if name in REFUSES_THESE_MESSAGES:
        with pytest.raises(InvalidTemplateInput):
            render(name, [USER, said, USER])
        return
    # MiniCPM3 writes the defaults of a tool's parameters so.
    assert "None" not in render(name, [USER, said, USER]) or name == "MiniCPM3-4B"
