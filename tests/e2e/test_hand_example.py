"""The worked example: successor model, a template that emits the contents, user message `a`."""

from collections.abc import Iterator

import pytest

from harness.event_stream import read_stream
from harness.raw_http import request
from harness.server_thread import ServerThread

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("simulated") as running:
        yield running


def body(**fields: object) -> dict[str, object]:
    return {"model": "simulated", "messages": [{"role": "user", "content": "a"}], "temperature": 0, **fields}


def test_three_tokens_after_a_are_bcd_and_the_usage_is_one_and_three(server: ServerThread) -> None:
    answer = request(server.port, "POST", CHAT, body(max_tokens=3)).json()
    assert answer["choices"][0]["message"]["content"] == "bcd"
    assert answer["choices"][0]["finish_reason"] == "length"
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) == (1, 3)
    assert answer["usage"]["total_tokens"] == 4


def test_a_stop_string_ends_the_text_before_it(server: ServerThread) -> None:
    answer = request(server.port, "POST", CHAT, body(max_tokens=10, stop=["de"])).json()
    assert answer["choices"][0]["message"]["content"] == "bc"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["choices"][0]["stop_reason"] == "de"
    assert answer["usage"]["completion_tokens"] == 4


@pytest.mark.parametrize(
    ("fields", "content", "reason"),
    [({"max_tokens": 3}, "bcd", "length"), ({"max_tokens": 10, "stop": ["de"]}, "bc", "stop")],
)
def test_the_stream_says_the_same(server: ServerThread, fields: dict[str, object], content: str, reason: str) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}}
    stream = read_stream(request(server.port, "POST", CHAT, body(**fields, **options)).body)
    assert stream.findings == []
    assert stream.content() == content
    assert stream.finish_reasons() == [reason]
    assert (stream.num_done, stream.is_done_last) == (1, True)
    assert stream.usage is not None
    assert stream.usage["prompt_tokens"] == 1
