"""What a server sends is kept byte for byte, and no server can make the client fail or wait forever."""

import asyncio
import socket
import threading
from dataclasses import replace

import pytest

from harness.hostile_server import HostileServer, Plays, goes_on_forever, resets, says
from tidegate.conformance.ask import Ask, Leaving, Manner
from tidegate.conformance.wire.exchange import Ending, Exchange
from tidegate.conformance.wire.fill import Filling, fill
from tidegate.conformance.wire.http_client import Bounds, exchange
from tidegate.conformance.wire.target import Target

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
WHOLE = OK + b'Content-Length: 11\r\n\r\n{"ok":true}'
BOUNDS = Bounds(20.0, max_response_bytes=1_000_000, max_parts=1000)


def ask_server(url: str, ask: Ask, bounds: Bounds = BOUNDS, **target: str) -> Exchange:
    request = fill(ask, Filling(Target(base_url=url, model="m", **target), "mark", 0, {}), is_scripted=False)
    return asyncio.run(exchange(ask, request, bounds, 0.0))


HOSTILE: dict[str, tuple[Plays, Ending, str]] = {
    "whole": (says(WHOLE), Ending.WHOLE, ""),
    "byte by byte": (says(*(WHOLE[i : i + 1] for i in range(len(WHOLE)))), Ending.WHOLE, ""),
    "interim responses": (says(b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + WHOLE), Ending.WHOLE, ""),
    "HTTP/1.0": (says(b'HTTP/1.0 200 OK\r\n\r\n{"ok":true}'), Ending.WHOLE, ""),
    "garbage": (says(b"\x00\xff not HTTP at all\r\n\r\n"), Ending.NOT_HTTP, ""),
    "HTTP/2": (says(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00"), Ending.NOT_HTTP, ""),
    "nothing": (says(), Ending.CUT, ""),
    "half a head": (says(OK), Ending.CUT, ""),
    "half a body": (says(OK + b'Content-Length: 99\r\n\r\n{"ok"'), Ending.CUT, ""),
    "half a chunk": (says(OK + b'Transfer-Encoding: chunked\r\n\r\nff\r\n{"ok"'), Ending.CUT, ""),
    "a chunk of no size": (says(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"), Ending.NOT_HTTP, ""),
    "two lengths": (says(OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), Ending.NOT_HTTP, ""),
    "a status of four digits": (says(b"HTTP/1.1 2000 OK\r\n\r\n"), Ending.NOT_HTTP, ""),
    "more than was declared": (says(WHOLE + b"HTTP/1.1 200 OK\r\n\r\n"), Ending.NOT_HTTP, "19 bytes follow"),
    "compressed": (says(OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00"), Ending.WHOLE, ""),
    "a reset": (resets(OK), Ending.RESET, ""),
    "headers without end": (goes_on_forever(OK, b"X-More: more\r\n"), Ending.NOT_HTTP, ""),
    "a header line without end": (goes_on_forever(OK + b"X-More: ", b"more"), Ending.NOT_HTTP, ""),
    "interim responses without end": (
        goes_on_forever(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        Ending.NOT_HTTP,
        "interim",
    ),
    "a body without end": (goes_on_forever(OK + b"\r\n", b"more"), Ending.ENDLESS, "bytes"),
    "chunks without end": (
        goes_on_forever(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
        Ending.ENDLESS,
        "bytes",
    ),
    "events without end": (
        goes_on_forever(OK.replace(b"application/json", b"text/event-stream") + b"\r\n", b"data: {}\n\n"),
        Ending.ENDLESS,
        "bytes",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_every_answer_ends_in_words(name: str) -> None:
    play, ending, detail = HOSTILE[name]
    with HostileServer(play) as server:
        found = ask_server(server.url, Ask())
    assert found.ending is ending, found.detail
    assert detail in found.detail
    assert sum(len(piece.data) for piece in found.pieces) < 3_000_000
    for reading in ("headers", "json", "events", "chunks", "framing_findings", "is_done"):
        getattr(found, reading)  # nothing that reads an exchange fails on it


def test_bytes_are_kept_as_they_came() -> None:
    with HostileServer(says(WHOLE)) as server:
        found = ask_server(server.url, Ask(body={"model": "{model}", "text": "{marker}"}))
    assert b"".join(piece.data for piece in found.pieces) == WHOLE
    assert found.request.endswith(b'{"model": "m", "text": "mark"}')
    assert found.json == {"ok": True}


def test_silence_ends_at_the_time_limit() -> None:
    release = threading.Event()

    def wait(client: socket.socket, head: bytes) -> None:
        release.wait(10)

    with HostileServer(wait) as server:
        found = ask_server(server.url, Ask(), replace(BOUNDS, timeout_s=0.05))
        own = ask_server(server.url, Ask(manner=Manner(timeout_s=0.05)))
        release.set()
    assert found.ending is own.ending is Ending.TIMED_OUT
    assert found.status is None


UNREACHABLE = ("http://127.0.0.1:1/v1", "http://a..b/v1", f"http://{'a' * 80}.invalid/v1")


@pytest.mark.parametrize("url", UNREACHABLE, ids=["closed port", "empty label", "long label"])
def test_no_connection_is_an_ending(url: str) -> None:
    assert ask_server(url, Ask()).ending is Ending.NO_CONNECTION


def test_a_client_that_leaves_has_left() -> None:
    with HostileServer(says(OK + b"Content-Length: 5\r\n\r\n", b"12345")) as server:
        for leaving in (Leaving.AFTER_REQUEST, Leaving.HALF_REQUEST, Leaving.AFTER_HEAD):
            for with_reset in (False, True):
                ask = Ask(body={"a": 1}, manner=Manner(leaving=leaving, with_reset=with_reset))
                found = ask_server(server.url, ask)
                # an answer that is whole in the same read as its head is no leaving any more
                assert found.ending in (Ending.LEFT, Ending.WHOLE)


def test_a_key_is_in_no_exchange_however_the_server_repeats_it() -> None:
    key = "sk-tide-0123456789/x"
    body = f'{{"error": {{"message": "{key}", "escaped": "{key}"}}}}'.encode()
    chunks = b"".join(b"3\r\n" + body[i : i + 3] + b"\r\n" for i in range(0, len(body) - 2, 3))
    chunked = OK + b"Transfer-Encoding: chunked\r\nX-Echo: " + key.encode() + b"\r\n\r\n" + chunks + b"0\r\n\r\n"
    with HostileServer(says(*(chunked[i : i + 7] for i in range(0, len(chunked), 7)))) as server:
        ask = Ask(path="/a?key=sk-tide-0123456789%2Fx", body={"key": key}, headers={"X-Key": "{key}"})
        found = ask_server(server.url, ask, api_key=key)
    whole = b"".join(piece.data for piece in found.pieces)
    assert len(whole) == len(chunked)
    assert found.ending is Ending.WHOLE
    for text in (whole, found.body, found.request, found.url.encode()):
        assert key.encode() not in text
        assert b"0123456789" not in text
    assert found.request.count(b"REDACTED") == 4
    assert found.body.count(b"REDACTED....") == 2


def test_a_short_key_is_taken_out_of_headers_only() -> None:
    with HostileServer(says(WHOLE)) as server:
        found = ask_server(server.url, Ask(body={"text": "test"}), api_key="test")
    assert b"Bearer REDACTED\r\n" in found.request
    assert b'"text": "test"' in found.request
