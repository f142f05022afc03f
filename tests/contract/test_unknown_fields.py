"""Fields that nobody knows are found by name, and reported in a header that is safe."""

import json

import pytest

from tidegate.contract.bounds import Limits
from tidegate.contract.chat import ChatRequest
from tidegate.contract.completion import CompletionRequest
from tidegate.contract.unknown_fields import UnknownFieldPolicy, ignored_fields_header, reported_fields, unknown_fields
from tidegate.errors import UnknownParameter

CASES = [
    ({}, []),
    ({"temperature": 1, "x_script": None}, []),
    ({"temprature": 1}, ["temprature"]),
    ({"zz": 1, "aa": 2}, ["zz", "aa"]),
    ({"stream_options": {"include_usage": True, "inculde": 1}}, ["stream_options.inculde"]),
    ({"stream_options": None}, []),
    ({"response_format": {"type": "json_object", "schema": {}}}, ["response_format.schema"]),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}, "strct": True}}},
        ["response_format.json_schema.strct"],
    ),
    ({"structured_outputs": {"jsno": {}}}, ["structured_outputs.jsno"]),
    ({"chat_template_kwargs": {"anything": 1}}, []),
    ({"metadata": {"anything": "1"}}, []),
    ({"guided_json": {}}, ["guided_json"]),
]


@pytest.mark.parametrize(("members", "names"), CASES)
def test_unknown_fields_are_named_in_order(members: dict[str, object], names: list[str]) -> None:
    body = json.dumps({"model": "m", **members}, indent=1).encode()
    assert unknown_fields(body, ChatRequest, Limits()) == names


def test_a_field_of_one_request_may_be_unknown_to_the_other() -> None:
    body = b'{"prompt":"a","messages":[]}'
    assert unknown_fields(body, ChatRequest, Limits()) == ["prompt"]
    assert unknown_fields(body, CompletionRequest, Limits()) == ["messages"]


def test_the_policies() -> None:
    assert reported_fields(["a", "b"], UnknownFieldPolicy.REPORT) == ["a", "b"]
    assert reported_fields(["a", "b"], UnknownFieldPolicy.IGNORE) == []
    assert reported_fields([], UnknownFieldPolicy.REJECT) == []
    with pytest.raises(UnknownParameter) as raised:
        reported_fields(["x" * 1000, "b"], UnknownFieldPolicy.REJECT)
    assert raised.value.param == "x" * 64
    assert len(raised.value.message) < 200


HEADERS = [
    (["a"], "a"),
    (["a", "stream_options.b"], "a, stream_options.b"),
    (["a\r\nSet-Cookie: x"], "a%0D%0ASet-Cookie%3A%20x"),
    (["é,b"], "%C3%A9%2Cb"),
    ([str(i) for i in range(17)], ", ".join([*(str(i) for i in range(16)), "..."])),
]


@pytest.mark.parametrize(("names", "value"), HEADERS)
def test_the_header_is_safe_whatever_the_names(names: list[str], value: str) -> None:
    assert ignored_fields_header(names) == value


def test_the_header_is_bounded() -> None:
    assert len(ignored_fields_header(["😀" * 1000] * 1000)) <= 16 * (64 * 12 + 2) + 3
