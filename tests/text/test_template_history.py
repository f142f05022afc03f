"""Turns with calls and their results: ids, order, deprecated and custom forms, one call a turn, reasoning."""

import copy
from typing import Any

import pytest

from tidegate.text.template_history import arrange_history
from tidegate.text.template_messages import TemplateCapabilities, prepare_messages

USER = {"role": "user", "content": "hi"}


def call(call_id: str, name: str = "f") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def turn(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def result(call_id: str, content: str = "ok", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def arrange(*messages: dict[str, Any], ids: Any = "any", single: bool = False) -> list[tuple[int, dict[str, Any]]]:
    before = copy.deepcopy(messages)
    arranged = [(at, dict(one)) for at, one in arrange_history(messages, call_ids=ids, single_calls=single)]
    assert messages == before
    return arranged


def ids_of(arranged: list[tuple[int, dict[str, Any]]]) -> list[Any]:
    """The ids in order: of calls as lists, of results as they are."""
    return [
        [one["id"] for one in message["tool_calls"]] if "tool_calls" in message else message.get("tool_call_id")
        for _, message in arranged
        if message["role"] in ("assistant", "tool")
    ]


def test_results_come_in_the_order_of_their_calls() -> None:
    arranged = arrange(USER, turn(call("a"), call("b"), call("c")), result("c"), result("x"), result("a"), result("b"))
    assert ids_of(arranged) == [["a", "b", "c"], "a", "b", "c", "x"]
    assert [at for at, _ in arranged] == [0, 1, 4, 5, 2, 3]


def test_results_are_put_in_order_within_their_turn_only() -> None:
    arranged = arrange(turn(call("a"), call("b")), result("b"), result("a"), turn(call("a")), result("a"))
    assert ids_of(arranged) == [["a", "b"], "a", "b", ["a"], "a"]


def test_results_that_follow_no_call_stay_where_they_are() -> None:
    assert ids_of(arrange(USER, result("z"), result("a"))) == ["z", "a"]


def test_a_result_gets_the_name_of_its_function() -> None:
    arranged = arrange(turn(call("a", "first"), call("b", "second")), result("b"), result("a", name="own"))
    assert [message["name"] for _, message in arranged[1:]] == ["own", "second"]


def test_ids_that_a_template_refuses_become_nine_letters_and_digits_and_stay_apart() -> None:
    arranged = arrange(
        turn(call("a1B2c3D4e"), call("call_one"), call("call_two")),
        result("call_two"),
        result("a1B2c3D4e"),
        result("call_one"),
        result("call_unknown"),
        ids="short",
    )
    (calls, *results) = ids_of(arranged)
    assert calls[0] == "a1B2c3D4e"
    assert all(len(one) == 9 and one.isalnum() and one.isascii() for one in [*calls, *results])
    assert results[:3] == calls
    assert len({*calls, *results}) == 4


def test_short_ids_do_not_depend_on_what_else_is_in_the_conversation() -> None:
    alone = ids_of(arrange(turn(call("call_two")), ids="short"))
    later = ids_of(arrange(turn(call("call_one")), result("call_one"), turn(call("call_two")), ids="short"))
    assert later[-1] == alone[0]


def test_ids_that_stand_for_the_name_hold_it() -> None:
    arranged = arrange(
        turn(call("call_x", "f"), call("functions.g:7", "g"), call("functions.g:0", "h")),
        result("functions.g:7"),
        result("call_x"),
        ids="named",
    )
    assert ids_of(arranged) == [["functions.f:0", "functions.g:7", "functions.h:2"], "functions.f:0", "functions.g:7"]


@pytest.mark.parametrize("calls", [None, 3, "x", [3], [{"function": 3}], [{"id": 1, "function": {"name": 2}}]])
def test_what_is_no_call_is_left_to_the_rules_on_messages(calls: object) -> None:
    message = {"role": "assistant", "content": "x", "tool_calls": calls}
    assert arrange(message, result("a"))[0] == (0, message)


def test_deprecated_calls_and_results_become_ordinary_ones() -> None:
    arranged = arrange(
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "one"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": None},
    )
    assert ids_of(arranged) == [["call_0"], "call_0", ["call_1"], "call_1"]
    assert all("function_call" not in message for _, message in arranged)


def test_a_deprecated_result_without_its_call_gets_an_id_all_the_same() -> None:
    assert ids_of(arrange({"role": "function", "name": "f", "content": "x"})) == ["call_0"]


def test_calls_of_custom_tools_are_shown_as_functions_of_one_text() -> None:
    custom = {"id": "a", "type": "custom", "custom": {"name": "sh", "input": 'ls "*"\n'}}
    [prepared] = prepare_messages([turn(custom)], TemplateCapabilities())
    function = {"name": "sh", "arguments": {"input": 'ls "*"\n'}}
    assert prepared["tool_calls"] == [{"id": "a", "type": "function", "function": function}]


def test_where_a_turn_holds_one_call_each_call_is_followed_by_its_result() -> None:
    several = turn(call("a"), call("b"), content="words", reasoning_content="why")
    arranged = arrange(USER, several, result("b"), result("a"), result("x"), USER, single=True)
    assert ids_of(arranged) == [["a"], "a", ["b"], "b", "x"]
    first, second = (message for _, message in arranged if "tool_calls" in message)
    assert (first["content"], first["reasoning_content"]) == ("words", "why")
    assert second == {"role": "assistant", "content": None, "tool_calls": [call("b")]}
    assert [at for at, _ in arranged] == [0, 1, 3, 1, 2, 4, 5]


def test_errors_name_the_place_in_the_request_whatever_was_moved() -> None:
    broken = {**result("a"), "content": 7}
    with pytest.raises(Exception, match=r"messages\[2\]\.content"):
        prepare_messages([turn(call("a"), call("b")), result("b"), broken], TemplateCapabilities())


CALLING = turn(call("a"))
REASONING = [
    # field, message, what it is when the template gets it
    ("reasoning_content", {"reasoning": "why"}, {"reasoning": "why", "reasoning_content": "why"}),
    ("thinking", {"reasoning_content": "why"}, {"reasoning_content": "why", "thinking": "why"}),
    ("tool_plan", {"reasoning_content": "why"}, {"reasoning_content": "why", "tool_plan": "why"}),
    (None, {"reasoning_content": "why"}, {"reasoning_content": "why"}),
    ("thinking", {"reasoning_content": ""}, {"reasoning_content": ""}),
    ("thinking", {}, {}),
]


@pytest.mark.parametrize(("where", "given", "expected"), REASONING)
def test_reasoning_goes_where_the_template_looks_for_it(
    where: Any, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    message = {"role": "assistant", "content": "words", **given}
    [prepared] = prepare_messages([message], TemplateCapabilities(reasoning_field=where))
    assert prepared == {"role": "assistant", "content": "words", **expected}


def test_reasoning_as_a_part_comes_before_the_text() -> None:
    capabilities = TemplateCapabilities(reasoning_field="part")
    thought = {"type": "thinking", "thinking": "why"}
    said, called = prepare_messages(
        [
            {"role": "assistant", "content": "words", "reasoning_content": "why"},
            turn(call("a"), reasoning_content="why"),
        ],
        capabilities,
    )
    assert said["content"] == [thought, {"type": "text", "text": "words"}]
    assert called["content"] == [thought]


def test_where_reasoning_excludes_content_a_turn_with_calls_has_both_as_reasoning() -> None:
    capabilities = TemplateCapabilities(reasoning_field="thinking", reasoning_excludes_content=True)
    both = {"content": "words", "reasoning_content": "why"}
    called, said = prepare_messages([turn(call("a"), **both), {"role": "assistant", **both}], capabilities)
    assert (called["content"], called["thinking"]) == ("", "why\n\nwords")
    assert (said["content"], said["thinking"]) == ("words", "why")
