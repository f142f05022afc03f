"""AnswerReader: the same from every fragmentation; what is a piece of text, an end, an error."""

import json
from typing import Any

import pytest

from tidegate.loadtest import answer_reader
from tidegate.loadtest.answer_reader import AnswerReader, describe_error
from tidegate.loadtest.sample import Ending


def event(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}


USAGE = {
    "choices": [],
    "usage": {"prompt_tokens": 9, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}},
}
STREAM = b": hello\n\n" + b"".join(
    event(part)
    for part in (
        chunk(role="assistant", content=""),
        chunk(reasoning_content="hm"),
        chunk(content="Hé"),
        chunk(content="llo"),
        chunk("stop"),
        USAGE,
        b"[DONE]",
    )
)


def read(*pieces: bytes) -> tuple[AnswerReader, Ending]:
    reader = AnswerReader()
    for number, piece in enumerate(pieces):
        reader.feed(piece, float(number))
    return reader, reader.finish()[0]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, len(STREAM)])
def test_a_stream_is_read_alike_in_any_fragmentation(size: int) -> None:
    reader, ending = read(*(STREAM[at : at + size] for at in range(0, len(STREAM), size)))
    assert ending is Ending.DONE
    assert reader.text == "Héllo"
    assert len(reader.token_at) == 3
    assert reader.token_at == sorted(reader.token_at)
    assert reader.finish_reason == "stop"
    assert reader.usage is not None
    assert (reader.usage.prompt_tokens, reader.usage.completion_tokens) == (9, 7)
    assert reader.usage.prompt_tokens_details is not None
    assert reader.usage.prompt_tokens_details.cached_tokens == 4


def test_lines_of_other_servers_are_read() -> None:
    assert read(STREAM.replace(b"\n", b"\r\n"))[0].text == "Héllo"
    assert read(STREAM.replace(b"data: ", b"data:"))[0].text == "Héllo"
    assert read(b"event: message\nid: 1\n" + STREAM)[0].text == "Héllo"


def test_completions_tool_calls_and_reasoning_are_pieces_of_text() -> None:
    text = {"choices": [{"text": "Hi", "finish_reason": None}]}
    call = chunk(tool_calls=[{"index": 0, "function": {"arguments": "{"}}])
    reader, _ = read(event(text), event(call), event(chunk(reasoning="x")), event(chunk(content="")))
    assert reader.token_at == [0.0, 1.0, 2.0]
    assert reader.text == "Hi"


@pytest.mark.parametrize(
    ("body", "ending"),
    [
        (event(chunk(content="x")), Ending.CUT),
        (event(chunk(content="x")) + event(chunk("length")), Ending.DONE),
        (event(chunk(content="x")) + event(b"[DONE]"), Ending.DONE),
        (event({"error": {"message": "no"}}), Ending.STREAM_ERROR),
        (event(b"<html>"), Ending.GARBAGE),
        (event({"choices": "many"}), Ending.GARBAGE),
        (event(b"\xff\xfe"), Ending.GARBAGE),
        (b"", Ending.GARBAGE),
        (b"<html>", Ending.GARBAGE),
        (b'{"choices": []}', Ending.NOT_STREAMED),
    ],
    ids=["cut", "no done", "no finish", "error", "html", "other JSON", "no UTF-8", "empty", "a page", "whole"],
)
def test_an_end_is_told_apart(body: bytes, ending: Ending) -> None:
    assert read(body)[1] is ending


def test_the_first_fault_stands_and_ends_the_reading() -> None:
    reader, ending = read(event({"error": "busy"}), event(chunk(content="x")), event(b"nonsense"))
    assert ending is Ending.STREAM_ERROR
    assert reader.fault == (Ending.STREAM_ERROR, "busy")
    assert reader.token_at == []


def test_what_never_ends_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_reader, "MAX_BODY_BYTES", 1000)
    monkeypatch.setattr(answer_reader, "MAX_WHOLE_BYTES", 100)
    monkeypatch.setattr(answer_reader, "MAX_EVENT_BYTES", 400)
    assert read(b"x" * 101)[1] is Ending.TOO_LONG
    assert read(event(chunk(content="x")), b"data: " + b"y" * 401)[1] is Ending.TOO_LONG
    assert read(*[event(chunk(content="x"))] * 40)[1] is Ending.TOO_LONG


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"error": {"message": "No such\\nmodel", "code": 3}}', "No such model"),
        (b'{"error": "busy"}', "busy"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"error": {"x": 1}}', '{"x":1}'),
        (b"[1]", "[1]"),
        (b"<h1>Bad</h1>", "<h1>Bad</h1>"),
        (b"\xff", "\ufffd"),
    ],
    ids=["a message", "a text", "detail", "no message", "a list", "a page", "no UTF-8"],
)
def test_an_error_is_told_by_its_message(body: bytes, says: str) -> None:
    assert describe_error(body) == says
    assert len(describe_error(b"x" * 10_000)) == answer_reader.MAX_DETAIL_CHARS
