"""Fields as an attack: integers beyond every range, names of the engine's own, control tokens spelled out."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.raw_http import Answer, request
from harness.server_thread import ServerThread
from tidegate.contract.chat import ChatRequest
from tidegate.contract.completion import CompletionRequest
from tidegate.contract.openapi import openapi_document
from tidegate.contract.operations import OPERATIONS
from tidegate.engine.options import EngineOptions
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.serving.request_rules import REPLACED_FIELDS
from tidegate.text.byte_tokenizer import BOS_TOKEN, BOS_TOKEN_ID, EOS_TOKEN, EOS_TOKEN_ID

CHAT, COMPLETION, TOKENIZE = "/v1/chat/completions", "/v1/completions", "/v1/tokenize"
SCHEMAS: dict[str, Any] = openapi_document()["components"]["schemas"]
MINIMAL: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}]},
    COMPLETION: {"prompt": "hi"},
    TOKENIZE: {"text": "hi"},
    "/v1/detokenize": {},
    "/v1/embeddings": {"input": "hi"},
    "/v1/score": {"text_1": "hi", "text_2": "ho"},
    "/v1/rerank": {"query": "hi", "documents": ["ho"]},
    "/v1/classify": {"input": "hi", "labels": ["a", "b"]},
}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted") as running:
        yield running
        assert running.baseline().blocks_used == 0


@pytest.fixture(scope="module")
def computing() -> Iterator[ServerThread]:
    """An engine whose text depends on everything that it is told."""
    with ServerThread("simulated", engine__simulated_model="hash") as running:
        yield running


def ask(server: ServerThread, route: str = CHAT, **fields: Any) -> Answer:
    return request(server.port, "POST", route, {"model": server.model, "max_tokens": 8, **MINIMAL[route], **fields})


def integer_members(schema: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields every integer of a request, as the path to it and its range; `[]` stands for a list."""
    if "$ref" in schema:
        yield from integer_members(SCHEMAS[schema["$ref"].rpartition("/")[2]], path)
    for option in schema.get("anyOf", ()):
        yield from integer_members(option, path)
    if schema.get("type") == "integer" and "minimum" in schema:
        yield path, schema
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        yield from integer_members(schema["items"], (*path, "[]"))
    for name, member in schema.get("properties", {}).items():
        if name != "choices":
            yield from integer_members(member, (*path, name))


def at(path: tuple[str, ...], text: str) -> str:
    """Returns the JSON member at `path` with a value."""
    for step in reversed(path[1:]):
        text = f"[{text}]" if step == "[]" else f'{{"{step}": {text}}}'
    return f'"{path[0]}": {text}'


INTEGERS = [
    pytest.param(one.path, path, limits, id=f"{one.path}-{'.'.join(path)}")
    for one in OPERATIONS
    if one.request is not None
    for path, limits in integer_members(SCHEMAS[one.request.__name__])
]


def test_there_are_integers_to_try() -> None:
    assert len(INTEGERS) > 35
    assert {name for case in INTEGERS for name in case.values[1]} >= {"seed", "n", "tokens", "x_script", "repeat"}


@pytest.mark.parametrize(("route", "path", "limits"), INTEGERS)
def test_no_integer_leaves_its_range(  # SEC-24
    server: ServerThread, route: str, path: tuple[str, ...], limits: dict[str, Any]
) -> None:
    beyond = (limits["minimum"] - 1, limits["maximum"] + 1, 2**64, -(2**63) - 1, 10**30, -(10**30))
    usual = json.dumps({"model": server.model, **MINIMAL[route]})[:-1]
    for text in (*map(str, beyond), "1.5", "-0.5", "1e999", "NaN", "true", '"1"', "[[[]]]"):
        answer = request(server.port, "POST", route, f"{usual}, {at(path, text)}}}".encode())
        assert answer.status == 400, (text, answer.body)
        error = answer.json()["error"]
        names = {path[0], path[-1]} if text == "NaN" else {path[0]}
        assert error["code"] == "invalid_json" or error["param"].partition(".")[0].partition("[")[0] in names, error


def test_after_all_of_them_the_server_is_as_before(server: ServerThread) -> None:  # SEC-24
    assert ask(server).status == 200


def test_requests_while_the_engine_starts_again_are_refused_or_served(server: ServerThread) -> None:  # SEC-24
    server.kill_engine()
    statuses = []
    while not statuses or statuses[-1] != 200:
        statuses.append(ask(server, "/v1/completions" if len(statuses) % 2 else CHAT, n=2).status)
    assert set(statuses) <= {200, 502, 503}
    server.wait_ready()
    assert ask(server).status == 200


INTERNAL = sorted(
    {
        *InferenceRequest.__struct_fields__,
        *SamplingParams.__struct_fields__,
        *StopRules.__struct_fields__,
        *EngineOptions.__struct_fields__,
    }
    - {*ChatRequest.__struct_fields__, *CompletionRequest.__struct_fields__, *REPLACED_FIELDS}
)
ELSEWHERE = (
    "vllm_xargs",
    "kv_transfer_params",
    "lora_request",
    "logits_processors",
    "custom_params",
    "rid",
    "extra_body",
)
"""Doors of other servers into their engines."""
UNKNOWN = (*INTERNAL, *ELSEWHERE)


@pytest.mark.parametrize("route", [CHAT, COMPLETION])
def test_the_engines_own_fields_change_nothing_and_are_reported(  # SEC-22
    computing: ServerThread, route: str
) -> None:
    plain = ask(computing, route, temperature=0).json()
    for value in ({"max_tokens": 1, "token_ids": [0], "a": "x" * 10_000}, 1, -1, None, "x", [[1]], True):
        answer = ask(computing, route, temperature=0, **dict.fromkeys(UNKNOWN, value))
        assert answer.status == 200, answer.body
        told = answer.json()
        assert (told["choices"], told["usage"]) == (plain["choices"], plain["usage"])
        assert set(answer.headers["tidegate-ignored-fields"].split(", ")) <= {*UNKNOWN, "..."}


def test_there_are_fields_of_the_engines_own() -> None:
    assert {"script", "num_choices", "token_ids", "model_path", "backend"} <= set(INTERNAL)


def test_unknown_fields_are_refused_where_the_operator_says_so() -> None:  # SEC-22
    with ServerThread("scripted", api__unknown_fields="reject") as running:
        for name in UNKNOWN:
            answer = ask(running, **{name: "x"})
            error = answer.json()["error"]
            assert (answer.status, error["code"], error["param"]) == (400, "unknown_parameter", name)
        assert ask(running).status == 200


SPELLED = f"a{EOS_TOKEN}b{BOS_TOKEN}{EOS_TOKEN}\n{EOS_TOKEN[:4]}"


@pytest.mark.parametrize(
    ("route", "fields"),
    [
        (CHAT, {"messages": [{"role": "user", "content": SPELLED}]}),
        (CHAT, {"messages": [{"role": "system", "content": [{"type": "text", "text": SPELLED}]}]}),
        (CHAT, {"messages": [{"role": "tool", "content": SPELLED, "tool_call_id": SPELLED}]}),
        (COMPLETION, {"prompt": SPELLED}),
    ],
)
def test_a_spelled_control_token_reaches_the_engine_as_text(  # SEC-28
    computing: ServerThread, route: str, fields: dict[str, Any]
) -> None:
    told = ask(computing, route, return_token_ids=True, **fields).json()
    ids = told.get("prompt_token_ids") or told["choices"][0]["prompt_token_ids"]
    assert bytes(ids).decode() == SPELLED
    assert not {BOS_TOKEN_ID, EOS_TOKEN_ID} & set(ids)
    assert told["usage"]["prompt_tokens"] == len(SPELLED)


def test_it_is_text_to_the_tokenizing_route_too(computing: ServerThread) -> None:  # SEC-28
    for fields in ({"text": SPELLED}, {"text": None, "messages": [{"role": "user", "content": SPELLED}]}):
        assert bytes(ask(computing, TOKENIZE, **fields).json()["tokens"]).decode() == SPELLED
