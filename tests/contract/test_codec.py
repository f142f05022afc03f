"""What is read and what is written: strict JSON in, safe single lines out."""

import base64
import json
from pathlib import Path

import msgspec
import pytest

from tidegate.contract.bounds import Limits
from tidegate.contract.codec import (
    decode_chat,
    decode_completion,
    decode_detokenize,
    decode_members,
    decode_tokenize,
    decode_value,
    encode_json,
)
from tidegate.contract.logprobs import TopLogprob, wire_logprob
from tidegate.errors import InvalidJson, InvalidRequest, InvalidValue

LIMITS = Limits()
ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "data/json-parsing/jsontestsuite.jsonl").read_text().splitlines()
]
NESTED_BY_100_000 = {"n_structure_100000_opening_arrays.json", "n_structure_open_array_object.json"}
"""Refused for their depth before anybody looks whether they are JSON: InvalidValue with the limit, not InvalidJson."""


def body_of(row: dict[str, str]) -> bytes:
    return base64.b64decode(row["b64"])


def test_the_suite_is_complete() -> None:
    assert len(ROWS) == 318


def outcome_of(text: bytes) -> str:
    try:
        decode_value(text, LIMITS)
    except InvalidJson:
        return "reject"
    except InvalidValue as error:
        return "too deep" if error.limit else "reject"
    return "accept"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_text_is_json_for_us_where_the_suite_says_so(row: dict[str, str]) -> None:
    outcome = outcome_of(body_of(row))
    if row["name"] in NESTED_BY_100_000:
        assert (row["expect"], outcome) == ("reject", "too deep")
    elif row["expect"] == "either":
        assert outcome in ("accept", "reject", "too deep")
    else:
        assert outcome == row["expect"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_vector_as_a_whole_body_is_refused_without_a_surprise(row: dict[str, str]) -> None:
    for decode in (decode_chat, decode_completion, decode_tokenize, decode_detokenize):
        if decode is decode_tokenize and row["expect"] != "reject" and body_of(row).strip().startswith(b"{"):
            continue  # no field of this request is required, so any object will do
        with pytest.raises(InvalidRequest):
            decode(body_of(row), LIMITS)


@pytest.mark.parametrize("row", [row for row in ROWS if row["expect"] == "reject"], ids=lambda row: row["name"])
@pytest.mark.parametrize("field", ["unknown", "chat_template_kwargs", "model"])
def test_a_malformed_vector_as_a_member_is_refused(row: dict[str, str], field: str) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"x"}],"%s":%s}' % (field.encode(), body_of(row))
    with pytest.raises(InvalidRequest):
        decode_chat(body, LIMITS)


@pytest.mark.parametrize(
    "body",
    [b'{"model":"m\xff"}', b'{"zz":"\xff"}', b'{"zz":"\xed\xa0\x80"}', b'{"\xc0\x80":1}'],
)
def test_bytes_that_are_not_utf8_are_refused_even_in_a_field_nobody_reads(body: bytes) -> None:
    with pytest.raises(InvalidJson):
        decode_tokenize(body, LIMITS)


@pytest.mark.parametrize("escape", [r"\ud83d", r"x \ud83d y", r"\ude00", r"\ud83d\ud83d", r"\ude00\ud83d", r"\ud83dA"])
def test_a_lone_surrogate_escape_is_refused(escape: str) -> None:
    body = '{"model":"m","messages":[{"role":"user","content":"%s"}]}' % escape  # noqa: UP031
    with pytest.raises(InvalidJson):
        decode_chat(body.encode(), LIMITS)


def test_a_surrogate_pair_is_one_character() -> None:
    body = rb'{"model":"m","messages":[{"role":"user","content":"\ud83d\ude00"}]}'
    message = decode_chat(body, LIMITS).messages[0]
    assert message.content == "😀"


def test_of_equal_keys_the_last_one_counts() -> None:
    body = b'{"model":"a","model":"b","messages":[{"role":"user","content":"x"}]}'
    assert decode_chat(body, LIMITS).model == "b"


@pytest.mark.parametrize("depth", [129, 10_000, 1_000_000])
def test_a_deep_body_is_refused_before_it_is_parsed(depth: int) -> None:
    with pytest.raises(InvalidValue) as raised:
        decode_chat(b'{"chat_template_kwargs":' + b'{"a":' * depth + b"}" * depth + b"}", LIMITS)
    assert raised.value.limit is not None
    assert raised.value.limit.name == "json_depth"


def test_brackets_in_text_are_not_depth() -> None:
    body = encode_json({"model": "m", "messages": [{"role": "user", "content": "[" * 100_000}]})
    assert decode_chat(body, LIMITS).messages[0].content == "[" * 100_000


def test_members_are_split_without_being_read() -> None:
    members = decode_members(b'{"a": [1, 2], "b": "x"}', LIMITS)
    assert {name: bytes(raw) for name, raw in members.items()} == {"a": b"[1, 2]", "b": b'"x"'}


@pytest.mark.parametrize("text", ["\u2028", "\u2029", "\u0085", "a\u2028b\u2029c\u0085d", "é\u2028", "–\u2028“"])
def test_line_separators_are_escaped_and_read_back(text: str) -> None:
    line = encode_json({"t": text})
    assert json.loads(line)["t"] == text
    assert len(line.decode().splitlines()) == 1


@pytest.mark.parametrize("text", [chr(code) for code in range(32)] + ["\x7f", "é", "日本", "😀", "“”–", "\ufffd"])
def test_text_survives_encoding_on_one_line(text: str) -> None:
    line = encode_json(text)
    assert json.loads(line) == text
    assert len(line.decode().splitlines()) == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_never_makes_invalid_json(value: float) -> None:
    assert encode_json({"a": value}) == b'{"a":null}'
    assert wire_logprob(value) == -9999.0
    line = encode_json(TopLogprob(token="a", logprob=wire_logprob(value), bytes=[97]))
    assert msgspec.json.decode(line) == {"token": "a", "logprob": -9999.0, "bytes": [97]}


def test_a_finite_logprob_is_passed_on() -> None:
    assert wire_logprob(-0.25) == -0.25
