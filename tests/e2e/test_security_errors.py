"""No error tells of the inside, on any route, whatever was sent. Every error that any test's client reads is looked at:
`harness/raw_http.py` and `harness/event_stream.py` do so; here are the look itself and the worst bodies we know.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.error_leaks import find_leak
from harness.event_stream import read_stream
from harness.raw_http import request
from harness.server_thread import ServerThread
from tidegate.contract.operations import OPERATIONS

ROUTES = tuple(one.path for one in OPERATIONS if one.request is not None)
NAUGHTY: list[str] = json.loads((Path(__file__).parent.parent / "data/naughty-strings/blns.json").read_text("utf-8"))

LEAKING = [
    'Traceback (most recent call last):\\n  File \\"/usr/lib/python3/x.py\\", line 3',
    "cannot open /home/user/model.gguf",
    "no such file: /tmp/tidegate-x/engine.sock",
    "<tidegate.serving.driver.RequestDriver object at 0x7f0a5c3b2e50>",
    "msgspec.ValidationError: Expected `int`",
    "in prepare.py",
]
CLEAN = [
    "The path and query are longer than 8192 bytes.",
    "messages[0].content: must be a string",
    "POST /v1/chat/completions is what you want",
    "max_tokens: 0x is no number",
]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted") as running:
        yield running


@pytest.mark.parametrize("text", LEAKING)
def test_a_leak_is_seen_unless_the_caller_sent_it(text: str) -> None:  # ERR-4
    assert find_leak(text.encode()) is not None
    assert find_leak(text.encode(), sent=b"xx" + text.encode()) is None


@pytest.mark.parametrize("text", CLEAN)
def test_plain_words_are_no_leak(text: str) -> None:  # ERR-4
    assert find_leak(text.encode()) is None


def wrong_bodies(text: str) -> Iterator[Any]:
    """The text wherever a body may name, choose or hold something."""
    yield {"model": text, "messages": [{"role": "user", "content": "a"}], "prompt": "a", "tokens": [1], "text": "a"}
    yield {"model": "scripted", "messages": [{"role": text, "content": "a"}], "prompt": {text: 1}, "tokens": text}
    yield {"model": "scripted", "messages": [{"role": "user", "content": [{"type": text}]}], "temperature": text}
    yield {"model": "scripted", "messages": [{"role": "user", "content": {text: [text]}}], "x_script": {text: 1}}
    yield [text]


@pytest.mark.parametrize("route", ROUTES)
def test_no_error_tells_of_the_inside_whatever_is_sent(server: ServerThread, route: str) -> None:  # ERR-4 SEC-14
    for text in NAUGHTY[::25]:
        for body in wrong_bodies(text):
            answer = request(server.port, "POST", route, body)
            assert answer.status < 500, answer.body
            if answer.status >= 400:
                assert len(answer.json()["error"]["message"].encode()) <= 2048


def test_an_accident_of_ours_is_told_in_one_fixed_sentence(server: ServerThread) -> None:  # ERR-4
    service: Any = server.running.parts.service
    good = server.look(lambda: service.served)

    class Broken:
        """A model that fails with words of its own wherever it is asked."""

        def __getattr__(self, name: str) -> Any:
            raise KeyError(f"/home/secret/{name} 0xdeadbeef")

    server.look(lambda: setattr(service, "served", Broken()))
    try:
        for method, path in (("GET", "/v1/models"), ("GET", "/v1/contract"), ("POST", "/v1/chat/completions")):
            answer = request(server.port, method, path, {} if method == "POST" else None)
            assert answer.status == 500
            error = answer.json()["error"]
            assert (error["code"], error["message"]) == (
                "internal_error",
                "the server failed to carry out this request",
            )
    finally:
        server.look(lambda: setattr(service, "served", good))
    assert request(server.port, "GET", "/v1/models").status == 200


@pytest.mark.parametrize("is_stream", [False, True])
def test_an_engine_that_fails_is_told_without_its_words(server: ServerThread, is_stream: bool) -> None:  # ERR-4
    body = {
        "model": "scripted",
        "prompt": "a",
        "stream": is_stream,
        "x_script": {"pieces": ["61", "62"], "error_after": 1},
    }
    answer = request(server.port, "POST", "/v1/completions", body)
    errors = read_stream(answer.body).errors if is_stream else [answer.json()["error"]]
    assert [error["code"] for error in errors] == ["engine_refused"]
