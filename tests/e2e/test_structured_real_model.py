"""The bundled model, which knows no JSON Schema, under constraints: by raw requests and through the official client."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import pytest
from openai import BadRequestError, OpenAI
from pydantic import BaseModel

from harness.benchmark_schemas import BenchmarkSchema, enforced_schemas, judge
from harness.event_stream import read_stream
from harness.raw_http import request
from harness.real_model import serve_bundled_model
from harness.server_thread import ServerThread

CHAT = "/v1/chat/completions"
MESSAGES: Any = [{"role": "user", "content": "Tell me about a cat, as JSON."}]
SCHEMAS = enforced_schemas(10)
pytestmark = [pytest.mark.model, pytest.mark.timeout(300)]


class Cat(BaseModel):
    colour: Literal["black", "white", "red"]
    is_hungry: bool
    lives: Literal[7, 9]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with serve_bundled_model() as running:
        yield running


@pytest.fixture(scope="module")
def client(server: ServerThread) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=120) as connected:
        yield connected


def fill(server: ServerThread, one: BenchmarkSchema) -> str | None:
    """Returns what is wrong with what the model writes under a schema."""
    body = {
        "model": server.model,
        "messages": MESSAGES,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": one.schema}},
        "max_tokens": 60,
        "seed": 1,
        "stream": True,
    }
    answer = request(server.port, "POST", CHAT, body)
    if answer.status != 200:
        return repr(answer.body)
    stream = read_stream(answer.body)
    return judge(one.schema, stream.content(), *stream.finish_reasons())


def test_ten_schemas_from_practice_are_kept_side_by_side(server: ServerThread) -> None:
    with ThreadPoolExecutor(len(SCHEMAS)) as pool:
        wrong = dict(zip([one.name for one in SCHEMAS], pool.map(lambda one: fill(server, one), SCHEMAS), strict=True))
    assert len(wrong) == 10
    assert set(wrong.values()) == {None}, wrong


def test_the_official_clients_parse_gives_a_model_of_pydantic(server: ServerThread, client: OpenAI) -> None:
    answer = client.chat.completions.parse(
        model=server.model, messages=MESSAGES, response_format=Cat, max_tokens=200, temperature=0
    )
    choice = answer.choices[0]
    assert choice.finish_reason == "stop"
    assert isinstance(choice.message.parsed, Cat)
    assert Cat.model_validate_json(choice.message.content or "") == choice.message.parsed


def test_the_official_clients_stream_gives_one_as_well(server: ServerThread, client: OpenAI) -> None:
    with client.chat.completions.stream(
        model=server.model, messages=MESSAGES, response_format=Cat, max_tokens=200, temperature=0
    ) as stream:
        parsed = [event.parsed for event in stream if event.type == "content.done"]
    assert [type(one) for one in parsed] == [Cat]


def test_each_kind_through_the_official_client(server: ServerThread, client: OpenAI) -> None:
    for outputs, expected in (
        ({"choice": ["yes", "no"]}, {"yes", "no"}),
        ({"regex": "(mon|tues)day"}, {"monday", "tuesday"}),
        ({"grammar": 'start: "a" | "b"'}, {"a", "b"}),
        ({"json": Cat.model_json_schema()}, None),
    ):
        answer = client.chat.completions.create(
            model=server.model,
            messages=MESSAGES,
            max_tokens=200,
            temperature=0,
            extra_body={"structured_outputs": outputs},
        )
        text = answer.choices[0].message.content or ""
        assert text in expected if expected is not None else Cat.model_validate_json(text)
        assert answer.choices[0].finish_reason == "stop"


def test_completions_are_held_to_a_constraint_too(server: ServerThread, client: OpenAI) -> None:
    answer = client.completions.create(
        model=server.model,
        prompt=["One plus one is ", "Two plus two is "],
        max_tokens=20,
        temperature=0,
        extra_body={"structured_outputs": {"regex": "[0-9]{1,2}"}},
    )
    assert [choice.text.isdigit() for choice in answer.choices] == [True, True]


def test_the_marker_of_a_tag_may_be_cut_by_tokens_in_any_way(server: ServerThread) -> None:
    tags = {
        "type": "structural_tag",
        "structures": [{"begin": "<cat>", "schema": Cat.model_json_schema(), "end": "</cat>"}],
        "triggers": ["<cat"],
    }
    body = {
        "model": server.model,
        "messages": [{"role": "user", "content": "Repeat exactly: <cat>"}, {"role": "assistant", "content": "Well, <"}],
        "continue_final_message": True,
        "structured_outputs": {"structural_tag": tags},
        "logit_bias": {str(token): 30 for token in tokens_of(server, "<cat>")},
        "max_tokens": 60,
        "temperature": 0,
    }
    text = request(server.port, "POST", CHAT, body).json()["choices"][0]["message"]["content"]
    start = text.find("<cat")
    assert start >= 0
    inside, end, _ = text[start:].removeprefix("<cat>").partition("</cat>")
    assert not end or Cat.model_validate_json(inside)


def tokens_of(server: ServerThread, text: str) -> list[int]:
    tokens: list[int] = request(server.port, "POST", "/v1/tokenize", {"text": text}).json()["tokens"]
    return tokens


@pytest.mark.parametrize("is_stream", [False, True])
def test_the_official_client_raises_before_anything_is_written(
    server: ServerThread, client: OpenAI, is_stream: bool
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?<=x)"}}}
    with pytest.raises(BadRequestError) as raised:
        client.chat.completions.create(
            model=server.model,
            messages=MESSAGES,
            stream=is_stream,
            response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
        )
    assert raised.value.code == "unsupported_schema"
    assert raised.value.param == "response_format.json_schema.schema.properties.a.pattern"


def test_greedy_text_is_the_same_again_and_any_legal_text_is_left_alone(server: ServerThread) -> None:
    body = {"model": server.model, "messages": MESSAGES, "max_tokens": 12, "temperature": 0}
    free = request(server.port, "POST", CHAT, body).json()["choices"][0]["message"]["content"]
    held = {**body, "structured_outputs": {"regex": r"(?s:.*)"}}
    assert request(server.port, "POST", CHAT, held).json()["choices"][0]["message"]["content"] == free
