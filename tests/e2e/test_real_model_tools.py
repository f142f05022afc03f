"""The bundled model, which cannot call tools by itself, under forced calls: whole, streamed, strict, named, custom."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.raw_http import Answer, request
from harness.real_model import serve_bundled_model
from harness.server_thread import ServerThread
from harness.streamed_calls import calls_of, function_call_of

pytestmark = pytest.mark.model

CHAT = "/v1/chat/completions"
COLOUR = {
    "type": "object",
    "properties": {
        "name": {"enum": ["red", "green", "blue"]},
        "shade": {"type": "integer", "minimum": 0, "maximum": 9},
    },
    "required": ["name", "shade"],
    "additionalProperties": False,
}
PICK = {"type": "function", "function": {"name": "pick_colour", "description": "Picks one.", "parameters": COLOUR}}
PING = {"type": "function", "function": {"name": "ping"}}
CODE = {
    "type": "custom",
    "custom": {"name": "code", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[A-C]{3}"}}},
}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with serve_bundled_model() as running:
        yield running


def ask(server: ServerThread, **members: Any) -> Answer:
    body = {"model": server.model, "messages": [{"role": "user", "content": "Pick a colour."}], "temperature": 0}
    return request(server.port, "POST", CHAT, {**body, "max_tokens": 90, **members})


def named(tool: dict[str, Any]) -> dict[str, Any]:
    kind = tool["type"]
    return {"type": kind, kind: {"name": tool[kind]["name"]}}


def check_colour(text: str) -> None:
    colour = json.loads(text)
    assert list(colour) == ["name", "shade"]
    assert colour["name"] in ("red", "green", "blue")
    assert colour["shade"] in range(10)


FORCED: list[dict[str, Any]] = [
    {"tools": [PICK], "tool_choice": "required", "parallel_tool_calls": False},
    {"tools": [PING, PICK], "tool_choice": named(PICK)},
    {
        "tools": [PING, PICK],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named(PICK)]}},
        "parallel_tool_calls": False,
    },
]


@pytest.mark.parametrize("members", FORCED, ids=["required", "named", "allowed"])
def test_a_forced_call_is_valid_and_alike_in_both_modes(server: ServerThread, members: dict[str, Any]) -> None:
    whole = ask(server, **members).json()["choices"][0]
    stream = read_stream(ask(server, stream=True, **members).body)
    (call,) = whole["message"]["tool_calls"]
    assert call["function"]["name"] == "pick_colour"
    check_colour(call["function"]["arguments"])
    (streamed,) = calls_of(stream)
    check_colour(streamed.text)
    assert whole["message"]["content"] is None
    assert stream.content() == ""
    reason = "stop" if members["tool_choice"] == named(PICK) else "tool_calls"
    assert whole["finish_reason"] == reason
    assert stream.finish_reasons() == [reason]


def test_many_choices_are_each_held_to_the_schema(server: ServerThread) -> None:
    body = ask(server, n=4, temperature=1.5, tools=[PICK], tool_choice=named(PICK)).json()
    for choice in body["choices"]:
        check_colour(choice["message"]["tool_calls"][0]["function"]["arguments"])


def test_deprecated_functions_are_forced_too(server: ServerThread) -> None:
    members: dict[str, Any] = {"functions": [PICK["function"]], "function_call": {"name": "pick_colour"}}
    check_colour(ask(server, **members).json()["choices"][0]["message"]["function_call"]["arguments"])
    call = function_call_of(read_stream(ask(server, stream=True, **members).body))
    assert call is not None
    check_colour(call["arguments"])


SUM = r"""
start: "say \"" sum "\"" NL
sum: INT (("+" | "\\") INT)~1..3
INT: /[1-9][0-9]{0,2}/
NL: "\n"
%ignore " "
"""
SUM_TEXT = re.compile(r'say *" *[1-9]\d{0,2}( *[+\\] *[1-9]\d{0,2}){1,3} *" *\n')


def test_a_custom_tool_is_held_to_a_lark_grammar(server: ServerThread) -> None:
    grammar = {"syntax": "lark", "definition": SUM}
    tool = {"type": "custom", "custom": {"name": "code", "format": {"type": "grammar", "grammar": grammar}}}
    members = {"tools": [tool], "tool_choice": named(tool)}
    (call,) = ask(server, **members).json()["choices"][0]["message"]["tool_calls"]
    assert call["type"] == "custom"
    assert SUM_TEXT.fullmatch(call["custom"]["input"]), call
    (streamed,) = calls_of(read_stream(ask(server, stream=True, **members).body))
    assert streamed.text == call["custom"]["input"]


def test_a_lark_grammar_that_is_none_is_refused_at_its_place(server: ServerThread) -> None:
    for definition, code in (('start: "a', "invalid_schema"), ("%declare A\nstart: A", "unsupported_schema")):
        grammar = {"syntax": "lark", "definition": definition}
        tool = {"type": "custom", "custom": {"name": "code", "format": {"type": "grammar", "grammar": grammar}}}
        answer = ask(server, tools=[tool], tool_choice=named(tool))
        error = answer.json()["error"]
        place = "tools[0].custom.format.grammar.definition"
        assert (answer.status, error["code"], error["param"]) == (400, code, place)


def test_a_custom_tool_is_held_to_its_grammar(server: ServerThread) -> None:
    answer = ask(server, tools=[CODE], tool_choice=named(CODE)).json()
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert call["type"] == "custom"
    assert len(call["custom"]["input"]) == 3
    assert set(call["custom"]["input"]) <= set("ABC")


def test_an_answer_beside_tools_is_a_call_or_fits_its_schema(server: ServerThread) -> None:
    schema = {"type": "object", "properties": {"x": {"const": 1}}, "required": ["x"], "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    message = ask(server, tools=[PICK], response_format=form).json()["choices"][0]["message"]
    if message.get("tool_calls"):
        assert message["tool_calls"][0]["function"]["name"] == "pick_colour"
    else:
        assert json.loads(message["content"]) == {"x": 1}


def test_a_call_cut_by_the_budget_says_length(server: ServerThread) -> None:
    choice = ask(server, tools=[PICK], tool_choice="required", max_tokens=12).json()["choices"][0]
    assert choice["finish_reason"] == "length"


def test_without_a_grammar_backend_forced_calls_are_refused_and_one_call_is_still_the_limit() -> None:
    strict = {"type": "function", "function": {"name": "f", "strict": True}}
    with serve_bundled_model(grammar__backend="none") as server:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"tools": [PICK], "tool_choice": "required"}, "tool_choice"),
            ({"tools": [PICK], "tool_choice": named(PICK)}, "tool_choice"),
            ({"tools": [PICK, strict]}, "tools[1].function.strict"),
            ({"tools": [CODE]}, "tools[0].custom.format"),
            ({"functions": [PICK["function"]], "function_call": {"name": "pick_colour"}}, "function_call"),
        ]
        for members, param in cases:
            answer = ask(server, **members)
            assert (answer.status, answer.json()["error"]["param"]) == (422, param)
        assert ask(server, tools=[PICK], parallel_tool_calls=False, max_tokens=4).status == 200
