"""What the scripting proxy has the scripted engine play (scripts/client_suites)."""

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "client_suites"))

import script_choice
from example_value import example_value
from scripting_proxy import with_script

sys.path.pop(0)

WEATHER = {
    "type": "object",
    "properties": {"port": {"type": "string"}, "day": {"type": "integer"}},
    "required": ["port"],
}
TOOLS = [
    {"type": "function", "function": {"name": "tide_at", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "ping"}},
]
ASKED = {"role": "user", "content": "The tide at 'Brest' in 2 days?"}
CALLED = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "tide_at"}}]}
TOLD = {"role": "tool", "tool_call_id": "a", "content": "high"}
TIDE_CALL = [("tide_at", {"port": "Brest", "day": 2})]
CUED = {"role": "user", "content": 'Now [[{"say": "A ]] b", "calls": [["ping", {"a": [[1]]}]], "think": "hm"}]] go.'}

CASES: dict[str, tuple[dict[str, Any], script_choice.Performance]] = {
    "plain words": ({"messages": [ASKED]}, script_choice.Performance(script_choice.PLAIN)),
    "no messages": ({}, script_choice.Performance(script_choice.PLAIN)),
    "the first tool": ({"messages": [ASKED], "tools": TOOLS}, script_choice.Performance(calls=TIDE_CALL)),
    "no tool may be called": (
        {"messages": [ASKED], "tools": TOOLS, "tool_choice": "none"},
        script_choice.Performance(script_choice.PLAIN),
    ),
    "the named tool": (
        {"messages": [ASKED], "tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "ping"}}},
        script_choice.Performance(calls=[("ping", {})]),
    ),
    "legacy functions": (
        {"messages": [ASKED], "functions": [TOOLS[0]["function"]]},
        script_choice.Performance(calls=TIDE_CALL),
    ),
    "a tool has answered": (
        {"messages": [ASKED, CALLED, TOLD], "tools": TOOLS},
        script_choice.Performance(script_choice.PLAIN),
    ),
    "the next tool where one is required": (
        {"messages": [ASKED, CALLED, TOLD], "tools": TOOLS, "tool_choice": "required"},
        script_choice.Performance(calls=[("ping", {})]),
    ),
    "an answer of an earlier turn": (
        {"messages": [ASKED, CALLED, TOLD, ASKED], "tools": TOOLS},
        script_choice.Performance(calls=TIDE_CALL),
    ),
    "a schema": (
        {"messages": [ASKED], "response_format": {"type": "json_schema", "json_schema": {"schema": WEATHER}}},
        script_choice.Performance('{"port": "Brest", "day": 2}'),
    ),
    "a schema that the prompt quotes": (
        {
            "messages": [{"role": "system", "content": f"Use {{}} or {json.dumps(WEATHER)}."}, ASKED],
            "response_format": {"type": "json_object"},
        },
        script_choice.Performance('{"port": "Brest", "day": 2}'),
    ),
    "names that the prompt quotes": (
        {
            "messages": [{"role": "user", "content": "JSON with 'setup' and \"end\" keys."}],
            "response_format": {"type": "json_object"},
        },
        script_choice.Performance('{"setup": "setup", "end": "end"}'),
    ),
    "a cue": (
        {"messages": [CUED], "tools": TOOLS},
        script_choice.Performance("A ]] b", [("ping", {"a": [[1]]})], "hm"),
    ),
    "a cue in parts": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": '[[{"say": "", "error_after": 1}]]'}]}]},
        script_choice.Performance(error_after=1),
    ),
    "a cue whose tools have answered": (
        {"messages": [CUED, CALLED, TOLD, TOLD], "tools": TOOLS},
        script_choice.Performance("The tools said: high; high"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_request_is_answered_as_its_caller_hopes(case: str) -> None:
    body, expected = CASES[case]
    assert script_choice.perform(body) == expected


def test_a_script_spells_reasoning_text_and_calls_in_hermes_markup() -> None:
    script = script_choice.choose_script({"messages": [CUED], "tools": TOOLS})
    text = b"".join(map(bytes.fromhex, script.pop("pieces"))).decode()
    assert text == (
        '<think>\nhm\n</think>\n\nA ]] b<tool_call>\n{"name": "ping", "arguments": {"a": [[1]]}}\n</tool_call>'
    )
    assert script == {"delays_s": [0.005], "parsers": {"tool": "hermes", "reasoning": "qwen3"}}


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'{"x_script": {"pieces": []}}'])
def test_a_body_that_cannot_have_a_script_or_has_one_goes_on_as_it_is(body: bytes) -> None:
    assert with_script(body) == body


def test_a_chat_request_gets_a_script_and_keeps_all_else() -> None:
    asked = {"messages": [ASKED], "stream": True}
    sent = json.loads(with_script(json.dumps(asked).encode()))
    assert sent.pop("x_script") == script_choice.choose_script(asked)
    assert sent == asked


SCHEMAS: dict[str, dict[str, Any]] = {
    "bounds": {"type": "integer", "minimum": 5, "maximum": 6},
    "exclusive bounds": {"type": "number", "exclusiveMinimum": 0},
    "negative": {"type": "integer", "maximum": -4},
    "short text": {"type": "string", "maxLength": 2},
    "long text": {"type": "string", "minLength": 30},
    "null": {"type": "null"},
    "several types": {"type": ["null", "boolean"]},
    "choice": {"anyOf": [{"type": "null"}, {"enum": ["x"]}]},
    "several parts": {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"const": 3}}},
    "items": {"type": "array", "items": {"type": "number"}, "minItems": 3},
    "itself": {
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "many": {"type": "array", "items": {"$ref": "#"}}},
    },
}


@pytest.mark.parametrize("case", SCHEMAS)
def test_an_example_is_valid_under_its_schema(case: str) -> None:
    value = example_value(SCHEMAS[case], "Take -7, 0, 5.5 and 'some words'.")
    assert jsonschema_rs.is_valid(SCHEMAS[case], value)


def test_a_schema_without_an_end_is_refused() -> None:
    endless = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    with pytest.raises(ValueError, match="depth"):
        example_value(endless)
