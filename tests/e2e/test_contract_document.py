"""What `GET /v1/contract` says is so: every limit of a request fires under its name, with its value and its code."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness.keys import add_key, bearing
from harness.raw_http import Answer, request
from harness.server_thread import ServerThread, wait_until
from tidegate.contract.json_schema import closed
from tidegate.lifecycle.principal import Quotas

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/contract.schema.json").read_text("utf-8"))
LOOPS = "{% if slow %}{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}{% endif %}"
SETTINGS: dict[str, Any] = {
    "limits__body_bytes": 1_000_000,
    "limits__json_depth": 20,
    "limits__messages": 5,
    "limits__prompts": 4,
    "limits__choices": 3,
    "limits__inputs": 5,
    "limits__schema_bytes": 100_000,
    "limits__schema_depth": 10,
    "limits__grammar_compile_ms": 30_000,
    "limits__template_ms": 100,
    "limits__template_bytes": 2048,
    "model__max_model_len": 4000,
    "model__max_output_tokens": 50,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    file = tmp_path_factory.mktemp("template") / "template.jinja"
    file.write_text(LOOPS + "{% for message in messages %}{{ message.content }}{% endfor %}", "utf-8")
    with ServerThread("scripted", model__chat_template=str(file), **SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def told(server: ServerThread) -> dict[str, Any]:
    answer = request(server.port, "GET", "/v1/contract")
    assert answer.status == 200
    found: dict[str, Any] = answer.json()
    jsonschema_rs.validate(closed(SCHEMA), found)
    assert answer.headers["tidegate-contract"] == found["contract"]
    assert answer.headers["tidegate-served-revision"] == found["models"][0]["revision"]
    return found


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def chat(**fields: Any) -> tuple[str, dict[str, Any]]:
    return CHAT, {"messages": [user("a")], "max_tokens": 4, **fields}


def completion(**fields: Any) -> tuple[str, dict[str, Any]]:
    return COMPLETION, {"prompt": "a", "max_tokens": 4, **fields}


def embedding(texts: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/embeddings", {"input": texts}


def nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def tool(name: str, description: str = "") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description}}


def script(**fields: Any) -> dict[str, Any]:
    return {"x_script": {"pieces": ["61"], **fields}}


def held_to(schema: Any) -> tuple[str, dict[str, Any]]:
    return completion(structured_outputs={"json": schema})


def links(count: int) -> dict[str, Any]:
    return {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(count)}


def rules(count: int) -> str:
    return "\n".join(["start: r0", *(f'r{i}: "a" r{i + 1}' for i in range(count - 2)), f'r{count - 2}: "b"'])


OVER: dict[str, tuple[str, dict[str, Any]]] = {
    "body_bytes": completion(prompt="a" * 1_000_001),
    "json_depth": completion(metadata=nest(21)),
    "json_members": completion(unheard_of={str(number): 1 for number in range(65_537)}),
    "messages": chat(messages=[user("a")] * 6),
    "prompts": completion(prompt=["a"] * 5),
    "choices": chat(n=4),
    "inputs": embedding(["a"] * 6),
    "input_tokens": embedding("a" * 4001),
    "labels": ("/v1/classify", {"input": "a", "labels": [f"label {number}" for number in range(129)]}),
    "stop_strings": chat(stop=["a", "b", "c", "d", "e"]),
    "logit_bias_entries": chat(logit_bias={str(index): 1 for index in range(1025)}),
    "tools": chat(tools=[tool(f"f{index}") for index in range(129)]),
    "tool_bytes": chat(tools=[tool("f", "a" * 262_144)]),
    "schema_bytes": held_to({"description": "a" * 100_000}),
    "schema_depth": held_to({"const": nest(10)}),
    "schema_nodes": held_to({"anyOf": [{}] * 20_001}),
    "schema_combinations": held_to({"dependentRequired": {f"k{i}": [f"r{i}"] for i in range(10)}}),
    "schema_rule_depth": held_to({"$ref": "#/$defs/d0", "$defs": {**links(600), "d600": {"type": "null"}}}),
    "schema_properties": held_to({"properties": {f"p{i}": {} for i in range(1001)}}),
    "schema_multiple": held_to({"type": "integer", "multipleOf": 1_000_003}),
    "schema_lengths": held_to({"anyOf": [{"type": "string", "maxLength": 1000 + i} for i in range(20)]}),
    "grammar_rules": completion(structured_outputs={"grammar": rules(801)}),
    "grammar_depth": completion(structured_outputs={"grammar": "start: " + "(" * 65 + '"a"' + ")" * 65}),
    "template_ms": chat(chat_template_kwargs={"slow": True}),
    "template_bytes": chat(messages=[user("a" * 3000)]),
    "context_length": completion(prompt="a" * 4001),
    "max_output_tokens": completion(max_tokens=51),
    "script_tokens": completion(**script(repeat=1_000_001)),
    "script_controls": completion(**script(pieces_special={"0": [f"<|{index}|>" for index in range(255)]})),
}
"""A request that is over each limit, and over no earlier one."""
ELSEWHERE = {
    "uri_bytes": "tests/http",
    "header_bytes": "tests/http",
    "json_elements": "tests/contract/test_json_size.py",
    "tokenize_characters": "tests/serving/test_large_bodies.py",
    "grammar_compile_ms": "tests/e2e/test_security_grammars.py",
    "pending_body_bytes": "tests/http/test_pending_bodies.py",
    "idempotency_entries": "of idempotency",
    "concurrency": "of keys",
    "requests_per_minute": "of keys",
    "tokens_per_minute": "of keys",
    "queue_depth": "tests/e2e/test_overload.py",
    "queued_tokens": "tests/e2e/test_overload.py",
    "queue_deadline_ms": "of admission",
}


def test_every_limit_in_force_is_tried_here_or_elsewhere(told: dict[str, Any]) -> None:
    in_force = {name for name, limit in told["limits"].items() if limit["enforced"]}
    assert in_force == OVER.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize("name", OVER)
def test_a_limit_fires_under_its_name_with_its_value(server: ServerThread, told: dict[str, Any], name: str) -> None:
    path, body = OVER[name]
    answer: Answer = request(server.port, "POST", path, {"model": server.model, **body})
    error, limit = answer.json()["error"], told["limits"][name]
    assert (answer.status, error["code"]) == (told["errors"][limit["code"]]["status"], limit["code"])
    fact = error["limit"]
    assert (fact["name"], fact["value"], fact["scope"]) == (name, limit["value"], limit["scope"])
    assert fact["actual"] > fact["value"]


def test_the_values_are_those_of_the_settings(told: dict[str, Any]) -> None:
    values = {name: limit["value"] for name, limit in told["limits"].items()}
    for setting, value in SETTINGS.items():
        name = setting.partition("__")[2]
        assert values["context_length" if name == "max_model_len" else name] == value
    assert told["models"][0]["context_length"] == 4000


@pytest.mark.parametrize("path", [CHAT, COMPLETION])
def test_a_field_that_is_not_served_is_refused_and_one_that_has_no_effect_is_not(
    server: ServerThread, told: dict[str, Any], path: str
) -> None:
    endpoint = next(one for one in told["models"][0]["endpoints"] if one["path"] == path)
    assert {use["use"] for use in endpoint["fields"].values()} >= {"acts", "not_served", "no_effect"}
    usual = {"messages": [user("a")]} if path == CHAT else {"prompt": "a"}
    for name, use in endpoint["fields"].items():
        if name not in ASKS:
            assert use["use"] == "acts", name
            continue
        answer = request(server.port, "POST", path, {"model": server.model, "max_tokens": 2, **usual, name: ASKS[name]})
        expected = {"not_served": (400, 422), "no_effect": (200,), "acts": (200,)}[use["use"]]
        assert answer.status in expected, (name, answer.body)


def test_a_key_reads_what_it_may_do_and_nobody_reads_it_without_one() -> None:
    with ServerThread("scripted") as running:
        state_dir = running.settings.server.state_dir
        assert state_dir is not None
        quotas = Quotas(concurrency=2, requests_per_minute=30)
        routes = frozenset({"/v1/contract", COMPLETION})
        key = add_key(state_dir, "batch", routes=routes, quotas=quotas, priority_min=10)
        wait_until(lambda: request(running.port, "GET", "/v1/contract").status == 401, "closed without a key")
        answer = request(running.port, "GET", "/v1/contract", headers=bearing(key))
        found = answer.json()
        jsonschema_rs.validate(closed(SCHEMA), found)
        assert found["caller"]["name"] == "batch"
        assert found["caller"]["priority_min"] == 10
        assert [one["path"] for one in found["models"][0]["endpoints"]] == [COMPLETION]
        limits = {name: limit["value"] for name, limit in found["limits"].items() if limit["scope"] == "key"}
        assert limits == {"concurrency": 2, "requests_per_minute": 30, "tokens_per_minute": None}
        assert key.encode() not in answer.body


ASKS: dict[str, Any] = {
    "user": "u",
    "metadata": {"a": "b"},
    "parallel_tool_calls": False,
    "verbosity": "low",
    "prompt_cache_key": "k",
    "prompt_cache_options": {},
    "prompt_cache_retention": "24h",
    "safety_identifier": "s",
    "structured_outputs": {"regex": "a"},
    "deadline_ms": 60_000,
    "first_token_deadline_ms": 60_000,
    "tools": [tool("f")],
    "response_format": {"type": "json_object"},
    "reasoning_effort": "high",
    "modalities": ["text", "audio"],
    "audio": {"voice": "x"},
    "prediction": {"type": "content"},
    "web_search_options": {},
    "service_tier": "flex",
    "store": True,
    "moderation": {},
    "functions": [{"name": "f"}],
    "chat_template": "x",
    "best_of": 2,
    "suffix": "z",
}
"""A value that asks for something, for every field that may be anything but acting."""
