"""Structured output through a whole server: what is refused before the 200, and what a constrained engine writes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness.event_stream import read_stream
from harness.raw_http import Answer, RawClient, request
from harness.server_thread import ServerThread, wait_until
from harness.slow_schema import slow_schema

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["cat", "dog"]},
        "lives": {"type": "integer", "minimum": 0, "maximum": 9},
        "tags": {"type": "array", "items": {"const": "x"}, "maxItems": 1},
    },
    "required": ["kind", "lives", "tags"],
    "additionalProperties": False,
}
CASES = Path(__file__).parents[1] / "data/cases/cases.jsonl"
SCHEMA_CASES = [
    case
    for case in map(json.loads, CASES.read_text("utf-8").splitlines())
    if case["kind"] == "schema" and "schema" in case["input"]
]
PLAYED = {"x_script": {"pieces": ["7b7d"], "finish": "eos"}}


@pytest.fixture(scope="module")
def scripted() -> Iterator[ServerThread]:
    with ServerThread("scripted", limits__grammar_compile_ms=30_000) as running:  # whatever else this machine does
        yield running


@pytest.fixture(scope="module")
def simulated() -> Iterator[ServerThread]:
    with ServerThread("simulated", engine__simulated_model="hash") as running:
        yield running


def named(schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}


def body_of(server: ServerThread, route: str, **members: Any) -> dict[str, Any]:
    prompt = {"prompt": "a"} if route == COMPLETION else {"messages": [{"role": "user", "content": "a"}]}
    return {"model": server.model, "max_tokens": 400, **prompt, **members}


def ask(server: ServerThread, route: str = CHAT, **members: Any) -> Answer:
    return request(server.port, "POST", route, body_of(server, route, **members))


def texts_of(server: ServerThread, route: str, **members: Any) -> list[tuple[str, str, Any]]:
    """Returns text, finish reason and stop reason of each choice, asked whole and streamed, which must agree."""
    whole = ask(server, route, **members).json()
    found = []
    for choice in whole["choices"]:
        text = choice["text"] if route == COMPLETION else choice["message"]["content"]
        found.append((text, choice["finish_reason"], choice.get("stop_reason")))
    answer = ask(server, route, stream=True, **members)
    assert answer.status == 200
    stream = read_stream(answer.body)
    streamed: list[list[Any]] = [["", None, None] for _ in found]
    for choice in (choice for chunk in stream.chunks for choice in chunk["choices"]):
        place = streamed[choice["index"]]
        place[0] += choice["text"] if route == COMPLETION else choice["delta"].get("content") or ""
        place[1] = choice["finish_reason"] or place[1]
        place[2] = choice.get("stop_reason", place[2])
    assert [tuple(place) for place in streamed] == found
    return found


REFUSALS: list[tuple[dict[str, Any], str, str, str | None]] = [
    (named({"type": "objectt"}), "invalid_schema", "response_format.json_schema.schema.type", None),
    (
        named({"properties": {"a": {"anyOf": [{}, {"pattern": "(?=x)"}]}}}),
        "unsupported_schema",
        "response_format.json_schema.schema.properties.a.anyOf[1].pattern",
        None,
    ),
    (named({"$dynamicRef": "#x"}), "unsupported_schema", "response_format.json_schema.schema.$dynamicRef", None),
    (named({"$ref": "#"}), "invalid_schema", "response_format.json_schema.schema", None),
    (named({"not": {}}), "invalid_schema", "response_format.json_schema.schema", None),
    (
        named({"dependentRequired": {f"k{i}": [f"r{i}"] for i in range(10)}}),
        "grammar_too_complex",
        "response_format.json_schema.schema",
        "schema_combinations",
    ),
    (
        {"structured_outputs": {"json": {"anyOf": [{}] * 20_001}}},
        "grammar_too_complex",
        "structured_outputs.json",
        "schema_nodes",
    ),
    (named({"x": "y" * 262_144}), "grammar_too_complex", "response_format.json_schema.schema", "schema_bytes"),
    ({"structured_outputs": {"json": "{"}}, "invalid_schema", "structured_outputs.json", None),
    ({"structured_outputs": {"regex": "a("}}, "invalid_schema", "structured_outputs.regex", None),
    ({"structured_outputs": {"regex": r"(a)\1"}}, "unsupported_schema", "structured_outputs.regex", None),
    ({"structured_outputs": {"grammar": "start: nope"}}, "invalid_schema", "structured_outputs.grammar", None),
    (
        {
            "structured_outputs": {
                "structural_tag": {
                    "type": "structural_tag",
                    "structures": [{"begin": "<f>", "schema": {"type": 1}, "end": ""}],
                    "triggers": ["<f"],
                }
            }
        },
        "invalid_schema",
        "structured_outputs.structural_tag.structures[0].schema.type",
        None,
    ),
]


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("number", range(len(REFUSALS)))
def test_what_cannot_be_enforced_is_400_before_any_200(scripted: ServerThread, number: int, is_stream: bool) -> None:
    members, code, param, limit = REFUSALS[number]
    for route in (CHAT, COMPLETION):
        answer = ask(scripted, route, stream=is_stream, **members, **PLAYED)
        error = answer.json()["error"]
        assert (answer.status, error["code"]) == (400, code), error
        assert error["param"].startswith(param)
        assert error.get("limit", {}).get("name") == limit
        assert answer.headers["x-should-retry"] == "false"
        assert not any(len(word) > 100 for word in error["message"].split())


def test_a_message_about_a_long_pattern_repeats_little_of_it(scripted: ServerThread) -> None:
    for members in (
        {"structured_outputs": {"regex": "x" * 5000 + "("}},
        {"structured_outputs": {"grammar": f"start: /{'x' * 5000}(/"}},
        named({"pattern": "y" * 5000 + "("}),
    ):
        message = ask(scripted, **members).json()["error"]["message"]
        assert "unclosed group" in message or "not enforced" in message
        assert "x" * 65 not in message
        assert "y" * 65 not in message


def test_a_script_is_played_under_a_constraint_that_can_be_enforced(scripted: ServerThread) -> None:
    for members in (named(PERSON), {"structured_outputs": {"choice": ["a"]}}):
        assert texts_of(scripted, CHAT, **members, **PLAYED) == [("{}", "stop", None)]


@pytest.mark.parametrize("case", SCHEMA_CASES, ids=lambda case: case["id"])
def test_a_schema_case_is_answered_as_it_says(scripted: ServerThread, case: dict[str, Any]) -> None:
    schema, expected = case["input"]["schema"], case["expect"]
    answer = ask(scripted, **named(schema), **PLAYED)
    assert answer.status == (200 if expected["compiles"] else 400), answer.body
    assert expected["compiles"] or answer.json()["error"]["param"].startswith("response_format")


KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "choice": ({"structured_outputs": {"choice": ["red", "green"]}}, "red|green"),
    "regex": ({"structured_outputs": {"regex": "[0-9]{3}-[a-f]{2,4}"}}, "[0-9]{3}-[a-f]{2,4}"),
    "lark": ({"structured_outputs": {"grammar": 'start: "a" b "c"\nb: "x" | "yy"'}}, "axc|ayyc"),
    "empty": ({"structured_outputs": {"choice": [""]}}, ""),
    "const": (
        {
            "structured_outputs": {
                "structural_tag": {"type": "structural_tag", "format": {"type": "const_string", "value": "é日"}}
            }
        },
        "é日",
    ),
}


@pytest.mark.parametrize("route", [CHAT, COMPLETION])
@pytest.mark.parametrize("name", KINDS)
def test_text_is_what_the_grammar_says(simulated: ServerThread, route: str, name: str) -> None:
    members, pattern = KINDS[name]
    schema = {"type": "string", "pattern": f"^(?:{pattern})$"}
    for seed in range(4):
        for text, finish, reason in texts_of(simulated, route, n=2, seed=seed, **members):
            assert (finish, reason) == ("stop", None)
            assert jsonschema_rs.is_valid(schema, text), text


@pytest.mark.parametrize("route", [CHAT, COMPLETION])
@pytest.mark.parametrize("field", ["response_format", "structured_outputs"])
def test_json_is_valid_by_its_schema(simulated: ServerThread, route: str, field: str) -> None:
    members = named(PERSON) if field == "response_format" else {field: {"json": json.dumps(PERSON)}}
    for text, finish, _ in texts_of(simulated, route, n=4, seed=3, **members):
        assert finish == "stop"
        assert list(json.loads(text)) == ["kind", "lives", "tags"]
        assert jsonschema_rs.is_valid(PERSON, json.loads(text))


def test_every_prompt_of_a_batch_is_held_to_the_constraint(simulated: ServerThread) -> None:
    members = {"prompt": ["a", "b", [1, 2]], "n": 3, "structured_outputs": {"regex": "[01]{8}"}}
    answers = ask(simulated, COMPLETION, **members).json()["choices"]
    assert [choice["index"] for choice in answers] == list(range(9))
    assert all(set(choice["text"]) <= {"0", "1"} and len(choice["text"]) == 8 for choice in answers)


def test_free_text_grows_into_a_tag_where_it_writes_the_trigger(simulated: ServerThread) -> None:
    tags = {
        "type": "structural_tag",
        "structures": [{"begin": "<f>", "schema": {"enum": [1, 2]}, "end": "</f>"}],
        "triggers": ["<f"],
    }
    members = {"structured_outputs": {"structural_tag": tags}, "allowed_token_ids": list(b"<f>12/a")}
    rests: list[str] = []
    for text, _, _ in texts_of(simulated, CHAT, n=6, seed=1, max_tokens=150, **members):
        rests += text.split("<f")[1:]
    assert len(rests) > 5
    for rest in rests:
        assert jsonschema_rs.is_valid({"pattern": r"^(>([12](<(/(f(>.*)?)?)?)?)?)?$"}, rest)


def test_a_budget_cuts_and_a_dead_end_is_told_and_neither_is_an_error(simulated: ServerThread) -> None:
    ((text, finish, _),) = texts_of(simulated, CHAT, max_tokens=3, seed=1, **named(PERSON))
    assert (text[0], finish) == ("{", "length")
    dead_end = {"structured_outputs": {"choice": ["red"]}, "allowed_token_ids": [ord("r")]}
    assert texts_of(simulated, CHAT, **dead_end) == [("r", "stop", "grammar_dead_end")]
    assert texts_of(simulated, COMPLETION, **dead_end) == [("r", "stop", "grammar_dead_end")]


def test_tools_that_may_be_called_are_the_other_way_to_answer(simulated: ServerThread) -> None:
    tools = [{"type": "function", "function": {"name": "ping"}}]
    for seed in range(6):
        answer = ask(simulated, tools=tools, seed=seed, **named(PERSON))
        assert answer.status == 200
        [choice] = answer.json()["choices"]
        if choice["finish_reason"] == "stop":
            jsonschema_rs.validate(PERSON, json.loads(choice["message"]["content"]))
        for call in choice["message"].get("tool_calls", []):
            assert call["function"]["name"] == "ping"
    without = ask(simulated, temperature=0, **named(PERSON)).json()["choices"]
    assert ask(simulated, tools=tools, tool_choice="none", temperature=0, **named(PERSON)).json()["choices"] == without


def test_a_client_that_goes_while_its_grammar_compiles_leaves_nothing(scripted: ServerThread) -> None:
    before = scripted.rest()
    grammars = scripted.running.parts.service.grammars
    assert grammars is not None
    with RawClient(scripted.port) as client:
        client.post(CHAT, body_of(scripted, CHAT, **named(slow_schema(0)), **PLAYED))
        wait_until(lambda: scripted.look(lambda: grammars.accounts().num_pending) == 1, "it compiles")
        client.reset()
    scripted.wait_back(before)
    wait_until(lambda: scripted.look(lambda: grammars.accounts().num_pending) == 0, "the compilation ends", 60)
    assert ask(scripted, **named(PERSON), **PLAYED).status == 200


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_deadline_holds_while_a_grammar_compiles(scripted: ServerThread, is_stream: bool) -> None:
    answer = ask(scripted, stream=is_stream, deadline_ms=30, **named(slow_schema(1 + is_stream)), **PLAYED)
    assert (answer.status, answer.json()["error"]["code"]) == (504, "deadline_exceeded")
