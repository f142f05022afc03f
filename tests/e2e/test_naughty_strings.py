"""Hard strings through the whole path: request, prompt, token, delta, event, and back, unchanged.

The scripted engine says each string one byte at a time, so that every character is cut at every place; the simulated
engine echoes it as a prompt. Sources: tests/data/naughty-strings, tests/data/utf8.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from harness.event_stream import read_stream
from harness.raw_http import Answer, request
from harness.server_thread import ServerThread

DATA = Path(__file__).parent.parent / "data"
CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
NAUGHTY: list[str] = json.loads((DATA / "naughty-strings/blns.json").read_text("utf-8"))
UTF8: list[str] = [row["text"] for row in json.loads((DATA / "utf8/cases.json").read_text("utf-8"))["strings"]]
STRINGS = [text for text in dict.fromkeys(NAUGHTY + UTF8) if text]
NUM_AT_ONCE = 32
LINE_ENDS = ("\u2028", "\u2029", "\u0085", "\r")


@pytest.fixture(scope="module")
def scripted() -> Iterator[ServerThread]:
    with ServerThread("scripted") as running:
        yield running


@pytest.fixture(scope="module")
def simulated() -> Iterator[ServerThread]:
    with ServerThread("simulated") as running:
        yield running


def pieces(text: str) -> list[str]:
    return [f"{byte:02x}" for byte in text.encode()]


def test_there_are_hundreds_of_them() -> None:
    assert len(STRINGS) > 500
    assert any("\u2028" in text for text in STRINGS)


def test_a_stream_says_each_as_it_was_generated_and_as_the_whole_answer_has_it(scripted: ServerThread) -> None:  # SSE-9

    def ask(text: str, *, is_stream: bool) -> Answer:
        script = {"pieces": pieces(text), "finish": "eos"}
        messages = [{"role": "user", "content": text}]
        body = {"model": scripted.model, "messages": messages, "x_script": script, "stream": is_stream}
        return request(scripted.port, "POST", CHAT, body)

    with ThreadPoolExecutor(NUM_AT_ONCE) as pool:
        whole = pool.map(partial(ask, is_stream=False), STRINGS)
        streamed = pool.map(partial(ask, is_stream=True), STRINGS)
        for text, answer, events in zip(STRINGS, whole, streamed, strict=True):
            assert answer.json()["choices"][0]["message"]["content"] == text
            stream = read_stream(events.body)
            assert (stream.findings, stream.num_done) == ([], 1), text
            assert stream.content() == text
            assert not any(end in events.body.decode() for end in LINE_ENDS)


def test_deltas_never_hold_half_a_character(scripted: ServerThread) -> None:  # SSE-7
    for text in UTF8:
        if "\ufffd" in text:
            continue
        body = {
            "model": scripted.model,
            "messages": [{"role": "user", "content": "a"}],
            "stream": True,
            "x_script": {"pieces": pieces(text), "finish": "eos"},
        }
        assert "\ufffd" not in read_stream(request(scripted.port, "POST", CHAT, body).body).content()


def test_a_user_message_reaches_the_model_byte_for_byte(simulated: ServerThread) -> None:
    for text in STRINGS:
        body = {"model": simulated.model, "messages": [{"role": "user", "content": text}], "max_tokens": 1}
        answer = request(simulated.port, "POST", CHAT, {**body, "return_token_ids": True})
        assert answer.status == 200, (text, answer.body)
        assert answer.json()["usage"]["prompt_tokens"] == len(text.encode())
        assert bytes(answer.json()["prompt_token_ids"]) == text.encode()


def test_echo_gives_each_back_streamed_and_whole(simulated: ServerThread) -> None:
    for text in STRINGS:
        body = {"model": simulated.model, "prompt": text, "max_tokens": 0, "echo": True}
        assert request(simulated.port, "POST", COMPLETION, body).json()["choices"][0]["text"] == text
        streamed = read_stream(request(simulated.port, "POST", COMPLETION, {**body, "stream": True}).body)
        assert streamed.text() == text
        assert streamed.findings == []


def test_tokens_come_back_as_the_text_they_were(simulated: ServerThread) -> None:
    for text in STRINGS:
        tokens = request(simulated.port, "POST", "/v1/tokenize", {"text": text}).json()["tokens"]
        assert request(simulated.port, "POST", "/v1/detokenize", {"tokens": tokens}).json()["text"] == text


def test_each_may_be_a_stop_string_a_bad_word_a_name_and_a_label(simulated: ServerThread) -> None:
    """Served, or refused as too long or not plain; never a failure."""
    for text in STRINGS[::4]:
        for member in ({"stop": text}, {"bad_words": [text]}, {"user": text}, {"metadata": {"k": text}}):
            message = {"role": "user", "content": "a", "name": text}
            body = {"model": simulated.model, "messages": [message], "max_tokens": 1, **member}
            answer = request(simulated.port, "POST", CHAT, body)
            assert answer.status in (200, 400), (member, answer.body)
            if answer.status == 400:
                assert answer.json()["error"]["param"] in ("user", "metadata"), answer.body


def test_each_may_be_the_name_of_a_model_or_of_an_unknown_field(simulated: ServerThread) -> None:
    for text in STRINGS:
        body = {"model": text, "messages": [{"role": "user", "content": "a"}], "max_tokens": 1}
        answer = request(simulated.port, "POST", CHAT, body)
        assert (answer.status, answer.json()["error"]["code"]) == (404, "model_not_found")
        known = {**body, "model": simulated.model, f"x-{text}": 1}
        answer = request(simulated.port, "POST", CHAT, known)
        assert answer.status == 200
        assert answer.headers["tidegate-ignored-fields"].isascii()
