"""Tools for templates that show none: the conversation as the model gets it."""

from typing import Any

import pytest

from tidegate.errors import UnsupportedParameter
from tidegate.parsers.families import FAMILIES
from tidegate.serving.tool_prompt import describe_tools, messages_with_tools
from tidegate.serving.tool_use import ShownTool, ToolUse
from tidegate.text.template_messages import TemplateCapabilities

TOOL = ShownTool("ping", "Says pong.", {"type": "object", "properties": {}}, "tools[0].function.parameters")
USE = ToolUse((TOOL,), (TOOL,))
JSON = FAMILIES["json"]
PLAIN = TemplateCapabilities()
TEXT = describe_tools(USE, JSON)


def told(*messages: dict[str, Any], use: ToolUse = USE) -> list[dict[str, Any]]:
    return messages_with_tools(messages, use, JSON, PLAIN)


def test_the_text_names_each_tool_and_shows_a_call() -> None:
    assert '{"name":"ping","description":"Says pong.","parameters":{"type":"object","properties":{}}}' in TEXT
    assert TEXT.endswith(JSON.example)
    assert "otherwise answer in plain text" in TEXT
    assert "otherwise" not in describe_tools(ToolUse((TOOL,), (TOOL,), "tool_choice"), JSON)
    assert "one call only" in describe_tools(ToolUse((TOOL,), (TOOL,), allows_many=False), JSON)
    assert FAMILIES["glm45"].example in describe_tools(USE, FAMILIES["glm45"])


def test_tools_go_into_the_system_message_and_make_one_where_there_is_none() -> None:
    user = {"role": "user", "content": "hi"}
    assert told(user) == [{"role": "system", "content": TEXT}, user]
    for role in ("system", "developer"):
        assert told({"role": role, "content": "Be brief."}, user)[0] == {
            "role": role,
            "content": f"Be brief.\n\n{TEXT}",
        }
        assert told({"role": role, "content": ""}, user)[0] == {"role": role, "content": TEXT}
    part = {"type": "text", "text": "Be brief."}
    assert told({"role": "system", "content": [part]})[0]["content"] == [part, {"type": "text", "text": TEXT}]


def test_calls_and_results_of_the_past_are_text() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "ping", "arguments": '{"a": 1.50}'}}
    free = {"id": "c2", "type": "custom", "custom": {"name": "free", "input": "x\n"}}
    past = told(
        {"role": "assistant", "content": "Wait.", "tool_calls": [call, free]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "pong"}]},
        {"role": "assistant", "function_call": {"name": "ping", "arguments": ""}},
        {"role": "function", "name": "ping", "content": None},
    )[1:]
    assert past == [
        {
            "role": "assistant",
            "content": 'Wait.\n{"name": "ping", "arguments": {"a": 1.50}}\n'
            '{"name": "free", "arguments": {"input":"x\\n"}}',
        },
        {"role": "user", "content": "Result of c1:\npong"},
        {"role": "assistant", "content": '{"name": "ping", "arguments": {}}'},
        {"role": "user", "content": "Result of ping:\n"},
    ]


@pytest.mark.parametrize(("use", "param"), [(USE, "tools"), (ToolUse((TOOL,), (TOOL,), is_legacy=True), "functions")])
def test_a_template_without_any_place_for_tools_is_422(use: ToolUse, param: str) -> None:
    with pytest.raises(UnsupportedParameter) as raised:
        messages_with_tools([{"role": "user", "content": "hi"}], use, JSON, TemplateCapabilities(supports_system=False))
    assert raised.value.param == param
