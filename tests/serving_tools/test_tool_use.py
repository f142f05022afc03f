"""Every form of the tool choice, as a table: what the model is shown, what it may call, what it must do."""

import json
from typing import Any

import pytest

from tidegate.contract.bounds import Limits
from tidegate.contract.codec import decode_chat, decode_tokenize
from tidegate.inference.finish import FinishReason
from tidegate.inference.grammar_parts import LarkPart, PatternPart
from tidegate.serving.request_policy import RequestPolicy
from tidegate.serving.request_rules import check_chat
from tidegate.serving.tool_use import NO_TOOLS, ToolUse, tool_use

USER = {"role": "user", "content": "hi"}


def function(name: str, **members: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **members}}


def custom(name: str, **members: Any) -> dict[str, Any]:
    return {"type": "custom", "custom": {"name": name, **members}}


def allowed(mode: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tools)}}


def use_of(**members: Any) -> ToolUse:
    request = decode_chat(json.dumps({"model": "m", "messages": [USER], **members}).encode(), Limits())
    check_chat(request, RequestPolicy())
    return tool_use(request)


AB = [function("a"), custom("b")]
STOP, CALLS, LEGACY = FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.FUNCTION_CALL
AF = [{"name": "a"}, {"name": "b"}]

# members, shown, callable, what demands a call, whether many may come, the reason of a choice that has called
FORMS: list[tuple[dict[str, Any], str, str, str | None, bool, FinishReason]] = [
    ({}, "", "", None, True, CALLS),
    ({"tools": []}, "", "", None, True, CALLS),
    ({"tools": AB}, "ab", "ab", None, True, CALLS),
    ({"tools": AB, "tool_choice": "auto"}, "ab", "ab", None, True, CALLS),
    ({"tools": AB, "tool_choice": "none"}, "", "", None, True, CALLS),
    ({"tools": AB, "tool_choice": "required"}, "ab", "ab", "tool_choice", True, CALLS),
    ({"tools": AB, "tool_choice": function("a")}, "ab", "a", "tool_choice", False, STOP),
    ({"tools": AB, "tool_choice": custom("b")}, "ab", "b", "tool_choice", False, STOP),
    ({"tools": AB, "tool_choice": allowed("auto", function("a"))}, "a", "a", None, True, CALLS),
    ({"tools": AB, "tool_choice": allowed("auto", custom("b"), function("a"))}, "ab", "ab", None, True, CALLS),
    ({"tools": AB, "tool_choice": allowed("required", custom("b"))}, "b", "b",
     "tool_choice.allowed_tools.mode", True, CALLS),
    ({"tools": AB, "parallel_tool_calls": False}, "ab", "ab", None, False, CALLS),
    ({"tools": AB, "parallel_tool_calls": True, "tool_choice": "required"}, "ab", "ab", "tool_choice", True, CALLS),
    ({"tools": AB, "parallel_tool_calls": False, "tool_choice": "required"}, "ab", "ab", "tool_choice", False, CALLS),
    ({"tools": AB, "parallel_tool_calls": False, "tool_choice": "none"}, "", "", None, True, CALLS),
    ({"functions": []}, "", "", None, True, CALLS),
    ({"functions": AF}, "ab", "ab", None, False, LEGACY),
    ({"functions": AF, "function_call": "auto"}, "ab", "ab", None, False, LEGACY),
    ({"functions": AF, "function_call": "none"}, "", "", None, True, CALLS),
    ({"functions": AF, "function_call": {"name": "b"}}, "ab", "b", "function_call", False, STOP),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=[str(i) for i in range(len(FORMS))])
def test_a_form_of_choice_does_what_the_table_says(
    form: tuple[dict[str, Any], str, str, str | None, bool, FinishReason],
) -> None:
    members, shown, callable_, must, allows_many, reason = form
    use = use_of(**members)
    assert "".join(tool.name for tool in use.shown) == shown
    assert "".join(tool.name for tool in use.callable) == callable_
    assert (use.must_place, use.allows_many, use.calls_finish) == (must, allows_many, reason)
    assert use.is_legacy == (reason is LEGACY or must == "function_call")
    assert len(use.offered()) == len(callable_)


def test_a_request_to_tokenize_shows_all_its_tools() -> None:
    request = decode_tokenize(json.dumps({"messages": [USER], "tools": AB}).encode(), Limits())
    assert [tool.name for tool in tool_use(request).shown] == ["a", "b"]
    assert tool_use(decode_tokenize(b'{"text": "a"}', Limits())) is NO_TOOLS


def test_strict_is_enforced_where_the_tool_may_be_called() -> None:
    tools = [function("a"), function("b", strict=True)]
    assert use_of(tools=tools).enforced_place == "tools[1].function.strict"
    assert use_of(tools=tools, tool_choice="none").enforced_place is None
    assert use_of(tools=tools, tool_choice=allowed("auto", function("a"))).enforced_place is None
    assert use_of(tools=tools, tool_choice="required").enforced_place == "tool_choice"
    assert use_of(tools=[function("a", strict=False)]).enforced_place is None


def test_templates_get_every_member_of_a_tool_and_never_strict() -> None:
    (bare,) = use_of(tools=[function("a", strict=True)]).shown
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    assert bare.to_template() == function("a", description="", parameters=empty)
    schema = {"type": "object", "properties": {"z": {}, "y": {}}, "x-mine": 1}
    (full,) = use_of(tools=[function("a", description="d", parameters=schema)]).shown
    assert full.to_template() == function("a", description="d", parameters=schema)
    assert full.to_grammar().schema == b'{"type":"object","properties":{"z":{},"y":{}},"x-mine":1}'
    assert full.to_grammar().place == "tools[0].function.parameters"


def test_a_custom_tool_is_a_function_with_one_string() -> None:
    lark = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a/"}}
    regex = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}
    use = use_of(tools=[custom("a"), custom("b", format={"type": "text"}), custom("c", format=lark),
                        custom("d", format=regex)])  # fmt: skip
    place = "custom.format.grammar.definition"
    assert [tool.text for tool in use.shown] == [
        PatternPart(""),
        PatternPart(""),
        LarkPart("start: /a/", f"tools[2].{place}"),
        PatternPart("a+", f"tools[3].{place}"),
    ]
    assert [tool.strict_place for tool in use.shown] == [None, None, "tools[2].custom.format", "tools[3].custom.format"]
    assert use.offered().custom_names == {"a", "b", "c", "d"}
    assert "start: /a/" in json.dumps(use.shown[2].to_template())
    assert use.shown[0].parameters["required"] == ["input"]
