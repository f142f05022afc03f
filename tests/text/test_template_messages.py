"""Messages of the API become messages of the template."""

import copy
from typing import Any

import pytest

from tidegate.errors import InvalidTemplateInput, InvalidValue, ServeError, UnsupportedParameter
from tidegate.text.template_messages import TemplateCapabilities, prepare_messages

PLAIN = TemplateCapabilities()
LISTS = TemplateCapabilities(list_roles=frozenset(("user",)))
ONLY_LISTS = TemplateCapabilities(list_roles=frozenset(("user",)), only_list_roles=frozenset(("user",)))
ARGUMENT_TEXT = TemplateCapabilities(wants_argument_text=True)
DEVELOPER = TemplateCapabilities(knows_developer=True)
PARTS = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]


def calling(arguments: object, **more: object) -> dict[str, object]:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {"role": "assistant", "tool_calls": [call], **more}


def called(arguments: object, **more: object) -> dict[str, object]:
    return {"role": "assistant", "content": "", **calling(arguments), **more}


# capabilities, message, what the template gets
PREPARED = [
    (PLAIN, {"role": "user", "content": "hi"}, {"role": "user", "content": "hi"}),
    (PLAIN, {"role": "assistant", "content": None}, {"role": "assistant", "content": ""}),
    (PLAIN, {"role": "assistant"}, {"role": "assistant", "content": ""}),
    (PLAIN, {"role": "user", "content": "x", "name": None}, {"role": "user", "content": "x"}),
    (PLAIN, {"role": "user", "content": PARTS}, {"role": "user", "content": "one\ntwo"}),
    (PLAIN, {"role": "user", "content": []}, {"role": "user", "content": ""}),
    (LISTS, {"role": "user", "content": PARTS}, {"role": "user", "content": PARTS}),
    (LISTS, {"role": "user", "content": "x"}, {"role": "user", "content": "x"}),
    (LISTS, {"role": "tool", "content": PARTS}, {"role": "tool", "content": "one\ntwo"}),
    (ONLY_LISTS, {"role": "user", "content": "x"}, {"role": "user", "content": [{"type": "text", "text": "x"}]}),
    (ONLY_LISTS, {"role": "user", "content": None}, {"role": "user", "content": []}),
    (PLAIN, {"role": "developer", "content": "x"}, {"role": "system", "content": "x"}),
    (DEVELOPER, {"role": "developer", "content": "x"}, {"role": "developer", "content": "x"}),
    (
        PLAIN,
        {"role": "function", "name": "f", "content": "x"},
        {"role": "tool", "tool_call_id": "call_0", "name": "f", "content": "x"},
    ),
    (PLAIN, {"role": "assistant", "content": "x", "tool_calls": []}, {"role": "assistant", "content": "x"}),
    (PLAIN, {"role": "assistant", "content": "x", "tool_calls": None}, {"role": "assistant", "content": "x"}),
    (PLAIN, calling('{"z": 1, "a": [2]}'), called({"z": 1, "a": [2]})),
    (PLAIN, calling({"z": 1}), called({"z": 1})),
    (PLAIN, calling(""), called({})),
    (PLAIN, calling(None), called({})),
    (ARGUMENT_TEXT, calling('{"z":  1}'), called('{"z":  1}')),
    (ARGUMENT_TEXT, calling('{"z":'), called('{"z":')),
    (ARGUMENT_TEXT, calling({"z": "é"}), called('{"z": "é"}')),
    (ARGUMENT_TEXT, calling(""), called("{}")),
    (PLAIN, calling("{}", reasoning_content="because"), called({}, reasoning_content="because")),
    (PLAIN, calling("{}", reasoning="because"), called({}, reasoning="because", reasoning_content="because")),
    (PLAIN, {"role": "assistant", "content": None, "refusal": "no"}, {"role": "assistant", "content": "no"}),
    (
        PLAIN,
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"role": "assistant", "content": "no"},
    ),
    (
        PLAIN,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}],
        },
    ),
]


@pytest.mark.parametrize(("capabilities", "message", "expected"), PREPARED)
def test_a_message_is_prepared_and_left_as_it_was(
    capabilities: TemplateCapabilities, message: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = copy.deepcopy(message)
    assert prepare_messages([message], capabilities) == [expected]
    assert message == before


IMAGE = {"type": "image_url", "image_url": {"url": "x"}}

REFUSED: list[tuple[TemplateCapabilities, dict[str, Any], type[ServeError], str]] = [
    (PLAIN, {"role": "user", "content": 5}, InvalidValue, "messages[0].content"),
    (PLAIN, {"role": "user", "content": ["x"]}, InvalidValue, "messages[0].content[0]"),
    (PLAIN, {"role": "user", "content": [{"type": "text"}]}, InvalidValue, "messages[0].content[0].text"),
    (PLAIN, {"role": "user", "content": [*PARTS, IMAGE]}, UnsupportedParameter, "messages[0].content[2]"),
    (PLAIN, {"role": "user", "content": [{"type": ["text"]}]}, UnsupportedParameter, "messages[0].content[0]"),
    (PLAIN, {"content": "x"}, InvalidValue, "messages[0].role"),
    (PLAIN, {"role": "assistant", "tool_calls": "x"}, InvalidValue, "messages[0].tool_calls"),
    (PLAIN, {"role": "assistant", "tool_calls": [{}]}, InvalidValue, "messages[0].tool_calls[0].function"),
    (PLAIN, calling('{"z":'), InvalidValue, "messages[0].tool_calls[0].function.arguments"),
    (PLAIN, calling("[1]"), InvalidValue, "messages[0].tool_calls[0].function.arguments"),
    (PLAIN, calling("[" * 100_000), InvalidValue, "messages[0].tool_calls[0].function.arguments"),
    (TemplateCapabilities(drops_system=True), {"role": "system"}, InvalidTemplateInput, "messages[0].role"),
    (TemplateCapabilities(drops_system=True), {"role": "developer"}, InvalidTemplateInput, "messages[0].role"),
]


@pytest.mark.parametrize(("capabilities", "message", "error", "param"), REFUSED)
def test_what_the_template_could_only_garble_is_refused_by_name(
    capabilities: TemplateCapabilities, message: dict[str, Any], error: type[ServeError], param: str
) -> None:
    with pytest.raises(error) as caught:
        prepare_messages([message], capabilities)
    assert caught.value.param == param
