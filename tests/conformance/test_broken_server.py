"""The proxy that mutants live in changes nothing of its own, and notices what a client does."""

from collections.abc import Iterator

import pytest

from harness.broken_server import BrokenServer
from harness.judged_case import RightServer, RightServers
from harness.mutant import AddsAfterStream, Answers, EditsChunks, GoesOnAlone, HoldsStream, Ignores, Mutant, Said
from harness.raw_http import RawClient
from harness.server_view import live_requests

BODY = {"model": "scripted", "messages": [{"role": "user", "content": "x"}]}
SLOW = {"pieces": ["61"], "repeat": 200, "delays_s": [0.01]}

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def right() -> Iterator[RightServer]:
    with RightServers() as running:
        yield running.of("scripted")


class _Faithful(Mutant):
    says = "changes nothing"


def _stream_of(port: int, **fields: object) -> bytes:
    with RawClient(port) as client:
        client.post("/v1/chat/completions", {**BODY, "stream": True, **fields})
        answer = client.read_answer()
    assert answer.is_complete
    return answer.body


def test_whole_answers_and_errors_pass_through(right: RightServer) -> None:
    with BrokenServer(right.port, _Faithful()) as broken, RawClient(broken.port) as client:
        client.post("/v1/chat/completions", BODY)
        answer = client.read_answer()
        assert answer.status == 200
        assert answer.json()["choices"][0]["message"]["content"] == "Hello from the scripted engine."
    with BrokenServer(right.port, _Faithful()) as broken, RawClient(broken.port) as client:
        client.send("POST", "/v1/chat/completions", b"{")
        assert client.read_answer().json()["error"]["code"] == "invalid_json"


def test_a_stream_passes_through_event_by_event(right: RightServer) -> None:
    with BrokenServer(right.port, _Faithful()) as broken:
        body = _stream_of(broken.port, x_script=SLOW, max_tokens=5)
    assert body.count(b"data: ") == _stream_of(right.port, x_script=SLOW, max_tokens=5).count(b"data: ")
    assert body.endswith(b"data: [DONE]\n\n")


def test_a_request_body_in_chunks_passes_through(right: RightServer) -> None:
    with BrokenServer(right.port, _Faithful()) as broken, RawClient(broken.port) as client:
        body = b'{"model": "scripted", "messages": [{"role": "user", "content": "x"}]}'
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        client.sock.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked)
        assert client.read_answer().status == 200


def test_mutants_of_each_part(right: RightServer) -> None:
    def without_finish(chunk: dict, position: int) -> list[dict]:
        return [] if any(choice["finish_reason"] for choice in chunk["choices"]) else [chunk]

    with BrokenServer(right.port, EditsChunks("no finish", without_finish)) as broken:
        assert b'"stop"' not in _stream_of(broken.port)
    with BrokenServer(right.port, AddsAfterStream("more", b"data: {}\n\n")) as broken:
        assert _stream_of(broken.port).endswith(b"[DONE]\n\ndata: {}\n\n")
    with BrokenServer(right.port, HoldsStream()) as broken:
        assert _stream_of(broken.port).endswith(b"data: [DONE]\n\n")
    with BrokenServer(right.port, Ignores(("max_tokens",))) as broken:
        assert b'"length"' not in _stream_of(broken.port, max_tokens=2)
    teapot = Answers("teapot", lambda heard: Said(418, b"{}"))
    with BrokenServer(right.port, teapot) as broken, RawClient(broken.port) as client:
        client.post("/v1/chat/completions", BODY)
        assert client.read_answer().status == 418


@pytest.mark.parametrize(("mutant", "num_left"), [(_Faithful(), 0), (GoesOnAlone(), 1)], ids=["faithful", "alone"])
def test_a_client_that_leaves_is_noticed_unless_the_mutant_goes_on(
    right: RightServer, mutant: Mutant, num_left: int
) -> None:
    admin_port = int((right.target.admin_url or "").rpartition(":")[2])
    with BrokenServer(right.port, mutant) as broken:
        with RawClient(broken.port) as client:
            client.post("/v1/chat/completions", {**BODY, "stream": True, "max_tokens": 200, "x_script": SLOW})
            client.read_head()
            client.read_chunk()
        with RawClient(right.port) as other:  # long after the leaving: its answer takes a hundred delays
            other.post("/v1/chat/completions", {**BODY, "max_tokens": 50, "x_script": SLOW})
            other.read_answer()
        assert len(live_requests(admin_port)) == num_left
