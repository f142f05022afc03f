"""Malformed bodies, and the code and param with which they are refused."""

import json
from typing import Any

import pytest

from tidegate.contract.bounds import Limits
from tidegate.contract.codec import decode_chat, decode_completion, decode_detokenize, decode_tokenize
from tidegate.contract.decode_fault import value_fault
from tidegate.contract.error_table import error_answer
from tidegate.errors import InvalidJson, InvalidRequest

HI = [{"role": "user", "content": "hi"}]
DECODERS = {
    "chat": (decode_chat, {"model": "m", "messages": HI}),
    "completion": (decode_completion, {"model": "m", "prompt": "a"}),
    "tokenize": (decode_tokenize, {}),
    "detokenize": (decode_detokenize, {"tokens": [1]}),
}


def refuse(route: str, body: bytes) -> dict[str, Any]:
    decode, _ = DECODERS[route]
    with pytest.raises(InvalidRequest) as raised:
        decode(body, Limits())
    answer = error_answer(raised.value)
    assert answer.status == 400
    error: dict[str, Any] = json.loads(answer.body)["error"]
    return error


RAW = [
    (b"", "invalid_json", None),
    (b" ", "invalid_json", None),
    (b"{", "invalid_json", None),
    (b'{"model":"m"', "invalid_json", None),
    (b"hello", "invalid_json", None),
    (b'"hello"', "invalid_json", None),
    (b"[]", "invalid_json", None),
    (b"null", "invalid_json", None),
    (b"5", "invalid_json", None),
    (b'{"model":"m","messages":[{"role":"user","content":"x"}]}{}', "invalid_json", None),
    (b'\xef\xbb\xbf{"model":"m"}', "invalid_json", None),
    (b"{'model':'m'}", "invalid_json", None),
    (b'{"temperature":NaN}', "invalid_value", "temperature"),
    (b'{"temperature":-Infinity}', "invalid_value", "temperature"),
    (b'{"temperature" : Infinity}', "invalid_value", "temperature"),
    (b'{"logit_bias":{"5":NaN}}', "invalid_json", None),
    (b'{"temperature":nan}', "invalid_json", None),
    (b'{"temperature":1e999}', "invalid_value", "temperature"),
    (b'{"temperature":01}', "invalid_json", None),
    (b"{}", "missing_field", "model"),
    (b'{"model":"m"}', "missing_field", "messages"),
]


@pytest.mark.parametrize(("body", "code", "param"), RAW)
def test_a_body_that_is_no_request(body: bytes, code: str, param: str | None) -> None:
    error = refuse("chat", body)
    assert (error["code"], error["param"]) == (code, param)


MESSAGES = [
    ("hi", "invalid_value", "messages"),
    ([], "invalid_value", "messages"),
    (None, "invalid_value", "messages"),
    ([5], "invalid_value", "messages[0]"),
    ([{}], "missing_field", "messages[0].role"),
    ([{"content": "x"}], "missing_field", "messages[0].role"),
    ([{"role": "wizard", "content": "x"}], "invalid_value", "messages[0].role"),
    ([{"role": 5, "content": "x"}], "invalid_value", "messages[0].role"),
    ([{"role": "user"}], "missing_field", "messages[0].content"),
    ([{"role": "user", "content": None}], "invalid_value", "messages[0].content"),
    ([{"role": "user", "content": 5}], "invalid_value", "messages[0].content"),
    ([{"role": "user", "content": []}], "invalid_value", "messages[0].content"),
    ([{"role": "user", "content": ["x"]}], "invalid_value", "messages[0].content[0]"),
    ([{"role": "user", "content": [{"type": "zzz"}]}], "invalid_value", "messages[0].content[0].type"),
    ([{"role": "user", "content": [{"text": "a"}]}], "missing_field", "messages[0].content[0].type"),
    ([{"role": "user", "content": [{"type": "text"}]}], "missing_field", "messages[0].content[0].text"),
    ([*HI, HI[0], {"role": "user", "content": [{"type": "text", "text": 5}]}], None, "messages[2].content[0].text"),
    (
        [{"role": "user", "content": [{"type": "image_url", "image_url": "u"}]}],
        None,
        "messages[0].content[0].image_url",
    ),
    ([{"role": "system", "content": [{"type": "image_url"}]}], "invalid_value", "messages[0].content[0].type"),
    ([{"role": "user", "content": [{"type": "refusal", "refusal": "n"}]}], None, "messages[0].content[0].type"),
    ([*HI, {"role": "tool", "content": "x"}], "missing_field", "messages[1].tool_call_id"),
    ([*HI, {"role": "tool", "content": "x", "tool_call_id": ""}], "invalid_value", "messages[1].tool_call_id"),
    ([*HI, {"role": "function", "content": "x"}], "missing_field", "messages[1].name"),
    ([{"role": "assistant", "tool_calls": [{"id": "a"}]}], "missing_field", "messages[0].tool_calls[0].type"),
    (
        [{"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f"}}]}],
        "missing_field",
        "messages[0].tool_calls[0].function.arguments",
    ),
]


@pytest.mark.parametrize(("messages", "code", "param"), MESSAGES)
def test_a_malformed_message_is_named_by_its_path(messages: object, code: str | None, param: str) -> None:
    error = refuse("chat", json.dumps({"model": "m", "messages": messages}).encode())
    assert error["param"] == param
    assert error["code"] == (code or "invalid_value")


FIELDS = [
    ("chat", {"model": 5}, "model"),
    ("chat", {"model": ""}, "model"),
    ("chat", {"n": "2"}, "n"),
    ("chat", {"n": True}, "n"),
    ("chat", {"n": 1.5}, "n"),
    ("chat", {"n": 0}, "n"),
    ("chat", {"n": -1}, "n"),
    ("chat", {"n": 10**40}, "n"),
    ("chat", {"temperature": "x"}, "temperature"),
    ("chat", {"temperature": False}, "temperature"),
    ("chat", {"temperature": [1]}, "temperature"),
    ("chat", {"temperature": 1e308}, "temperature"),
    ("chat", {"stream": "yes"}, "stream"),
    ("chat", {"stream": 1}, "stream"),
    ("chat", {"stop": [1]}, "stop[0]"),
    ("chat", {"stop": 5}, "stop"),
    ("chat", {"logit_bias": {"5": 101}}, "logit_bias"),
    ("chat", {"logit_bias": {"5": "1"}}, "logit_bias"),
    ("chat", {"logit_bias": [5]}, "logit_bias"),
    ("chat", {"metadata": {"a": 1}}, "metadata"),
    ("chat", {"metadata": {"k" * 65: "v"}}, "metadata"),
    ("chat", {"stream_options": {"include_usage": "x"}}, "stream_options.include_usage"),
    ("chat", {"tool_choice": "sometimes"}, "tool_choice"),
    ("chat", {"tool_choice": {"type": "function"}}, "tool_choice.function"),
    ("chat", {"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
    ("chat", {"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
    ("chat", {"tools": [{"type": "magic"}]}, "tools[0].type"),
    ("chat", {"response_format": {"type": "yaml"}}, "response_format.type"),
    ("chat", {"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ("chat", {"response_format": "json"}, "response_format"),
    ("chat", {"x_script": {"piece": []}}, "x_script.piece"),
    ("chat", {"x_script": {"pieces": [5]}}, "x_script.pieces[0]"),
    ("chat", {"x_script": {"logprobs": ["inf"]}}, "x_script.logprobs[0]"),
    ("chat", {"cache_salt": "a\n"}, "cache_salt"),
    ("chat", {"user": "a\u0000b"}, "user"),
    ("completion", {"prompt": [1.5]}, "prompt[0]"),
    ("completion", {"prompt": [[True]]}, "prompt[0][0]"),
    ("completion", {"prompt": {}}, "prompt"),
    ("completion", {"prompt": None}, "prompt"),
    ("completion", {"logprobs": True}, "logprobs"),
    ("tokenize", {"messages": []}, "messages"),
    ("tokenize", {"prompt": 5}, "prompt"),
    ("detokenize", {"tokens": [-1]}, "tokens[0]"),
    ("detokenize", {"tokens": "x"}, "tokens"),
]


@pytest.mark.parametrize(("route", "members", "param"), FIELDS)
def test_a_malformed_field_is_named(route: str, members: dict[str, Any], param: str) -> None:
    _, good = DECODERS[route]
    error = refuse(route, json.dumps({**good, **members}).encode())
    assert error["param"] == param
    assert param in error["message"]
    assert "$" not in error["message"]
    assert "`" not in error["message"]


@pytest.mark.parametrize(
    "role", ["w" * 1_000_000, "w` - at `$.model`", "a' - at `$.b`", "\u2028\x1b[31m\u202e", "é" * 99]
)
def test_a_quoted_value_is_cut_and_cannot_forge_a_path(role: str) -> None:
    error = refuse("chat", json.dumps({"model": "m", "messages": [{"role": role, "content": "x"}]}).encode())
    assert error["param"] == "messages[0].role"
    assert len(error["message"]) < 400
    assert error["message"].isprintable()


def test_text_that_nobody_foresaw_still_becomes_an_error() -> None:
    assert value_fault("Something new - at `$.a[0].b`").param == "a[0].b"
    assert isinstance(value_fault("Something new"), InvalidJson)
