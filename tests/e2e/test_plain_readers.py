"""A stream as `curl -N` and a bare socket see it: every line, how it ends, and that it comes as it is generated."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.raw_http import RawClient, request
from harness.real_model import serve_bundled_model
from harness.server_thread import ServerThread

CHAT = "/v1/chat/completions"
CUT_OFF = (18, 56)
"""curl's exit codes for a body that ended too early."""

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@pytest.fixture(scope="module")
def scripted() -> Iterator[ServerThread]:
    with ServerThread("scripted") as running:
        yield running


@pytest.fixture(scope="module", params=["simulated", pytest.param("llama", marks=pytest.mark.model)])
def server(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    with serve_bundled_model() if request.param == "llama" else ServerThread("simulated") as running:
        yield running


def body(server: ServerThread, **members: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Say something."}]
    return {"model": server.model, "messages": messages, "temperature": 0, "max_tokens": 8, **members}


def curl(server: ServerThread, data: dict[str, Any], *options: str) -> subprocess.Popen[bytes]:
    command = [
        "curl",
        "-sN",
        *options,
        server.url + CHAT,
        "-H",
        "Content-Type: application/json",
        "-d",
        json.dumps(data),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


@needs_curl
def test_curl_reads_a_whole_stream(server: ServerThread) -> None:
    with curl(server, body(server, stream=True), "-i") as process:
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    head, _, events = told.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"text/event-stream; charset=utf-8" in head
    assert events.endswith(b"data: [DONE]\n\n")
    whole = request(server.port, "POST", CHAT, body(server)).json()
    assert read_stream(events).content() == whole["choices"][0]["message"]["content"]


@needs_curl
def test_curl_sees_each_piece_as_it_is_generated(scripted: ServerThread) -> None:  # SSE-8
    """The second piece never comes, and still the first one is there."""
    script = {"pieces": ["61", "62"], "delays_s": [0, 3600], "finish": "eos"}
    with curl(scripted, body(scripted, stream=True, x_script=script)) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        process.kill()
    assert lines[1::2] == [b"\n", b"\n"]
    assert [json.loads(line[6:])["choices"][0]["delta"] for line in lines[::2]] == [
        {"role": "assistant", "content": ""},
        {"content": "a"},
    ]
    scripted.call(scripted.running.parts.service.wait_empty)


@needs_curl
def test_curl_reports_a_stream_that_broke(scripted: ServerThread) -> None:
    script = {"pieces": ["61"], "repeat": 1000, "delays_s": [0.01], "finish": "eos"}
    with curl(scripted, body(scripted, stream=True, max_tokens=None, x_script=script)) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        scripted.kill_engine()
        stream = read_stream(first + process.stdout.read())
    assert process.returncode in CUT_OFF
    assert [error["code"] for error in stream.errors] == ["engine_lost"]
    assert (stream.num_done, stream.finish_reasons()) == (0, [])
    scripted.wait_ready()


@needs_curl
@pytest.mark.parametrize("is_stream", [False, True])
def test_curl_fails_on_a_refusal_when_told_to(server: ServerThread, is_stream: bool) -> None:
    with curl(server, body(server, stream=is_stream, top_p=0), "--fail-with-body") as process:
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 22
    assert json.loads(told)["error"]["param"] == "top_p"


def test_a_bare_socket_gets_one_whole_event_or_more_in_every_chunk(server: ServerThread) -> None:
    answer = request(server.port, "POST", CHAT, body(server, stream=True))
    assert answer.is_complete
    assert answer.headers["transfer-encoding"] == "chunked"
    assert "content-length" not in answer.headers
    assert "content-encoding" not in answer.headers
    for chunk in answer.chunks:
        assert chunk.startswith((b"data: ", b": ping\n"))
        assert chunk.endswith((b"\n\n", b": ping\n"))


def test_a_connection_serves_one_request_after_another_of_every_kind(server: ServerThread) -> None:
    whole = request(server.port, "POST", CHAT, body(server)).json()["choices"]
    with RawClient(server.port) as client:
        for is_stream in (True, False, True):
            client.post(CHAT, body(server, stream=is_stream))
            answer = client.read_answer()
            assert answer.is_complete
            if is_stream:
                assert read_stream(answer.body).content() == whole[0]["message"]["content"]
            else:
                assert answer.json()["choices"] == whole
            client.post(CHAT, body(server, stream=is_stream, n=0))
            assert client.read_answer().status == 400
            client.send("GET", "/v1/models")
            assert client.read_answer("GET").json()["data"][0]["id"] == server.model


def test_a_head_and_a_body_that_come_byte_by_byte_are_one_request(server: ServerThread) -> None:
    text = json.dumps(body(server)).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    with RawClient(server.port) as client:
        for byte in head.encode() + text:
            client.sock.sendall(bytes([byte]))
        assert client.read_answer().status == 200
