"""Behind a real nginx: as it comes, with a short patience, and as our documentation tells people to run it."""

import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.certificates import connect, make_pair, trusting
from harness.event_stream import read_stream
from harness.faults import LONG_S, Route, ask, hex_pieces
from harness.nginx import Nginx, free_port, pass_to
from harness.raw_http import Answer, RawClient, request
from harness.server_thread import ServerThread, wait_until
from harness.server_view import live_requests

pytestmark = pytest.mark.process

CHAT = Route.CHAT.value
DOCS = Path(__file__).parents[2] / "docs" / "proxies.md"
SILENCE_S = 2.5
"""Longer than nginx waits in one test."""
NUM_PACED = 12


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted", server__heartbeat_s=0.3) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(server: ServerThread, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    """nginx at its default settings, with nothing but a `proxy_pass`."""
    port = free_port()
    with Nginx(tmp_path_factory.mktemp("nginx"), pass_to(port, server.port), port) as running:
        yield running


def begin(port: int, name: str, script: dict[str, Any]) -> tuple[RawClient, Answer]:
    client = RawClient(port)
    client.post(CHAT, ask(Route.CHAT, script, stream=True), {"X-Request-Id": name})
    answer = client.read_head()
    assert (answer.status, answer.headers["x-request-id"]) == (200, name)
    return client, answer


def read_until_text(client: RawClient, answer: Answer, text: str) -> None:
    while read_stream(answer.body).content() != text:
        chunk = client.read_chunk()
        assert chunk is not None, "the stream ended early"
        answer.chunks.append(chunk)
        answer.body += chunk


def test_the_first_token_passes_while_the_engine_still_waits_for_the_second(
    server: ServerThread, proxy: Nginx
) -> None:  # SSE-1
    client, answer = begin(proxy.port, "first", {"pieces": hex_pieces("a", "b"), "delays_s": [0.0, LONG_S]})
    read_until_text(client, answer, "a")
    assert live_requests(server.admin_port)["first"]["completion_tokens"] == 1
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert "content-length" not in answer.headers
    assert "content-encoding" not in answer.headers
    client.close()
    wait_until(lambda: not live_requests(server.admin_port), "the request is gone")


def test_chunks_are_not_clumped(server: ServerThread, proxy: Nginx) -> None:
    texts = [chr(ord("a") + i) for i in range(NUM_PACED)]
    client, answer = begin(proxy.port, "paced", {"pieces": hex_pieces(*texts), "delays_s": [0.05] * NUM_PACED})
    read_until_text(client, answer, "".join(texts))
    num_with_text = sum(b'"content":"' in chunk and b'"content":""' not in chunk for chunk in answer.chunks)
    assert num_with_text > NUM_PACED // 2
    client.close()
    wait_until(lambda: not live_requests(server.admin_port), "the request is gone")


def test_heartbeats_keep_a_silent_stream_open_past_the_proxys_patience(server: ServerThread, tmp_path: Path) -> None:
    port = free_port()
    told = pass_to(port, server.port, "proxy_read_timeout 1s;")
    script = {"pieces": hex_pieces("a", "b"), "delays_s": [0.0, SILENCE_S], "finish": "eos"}
    with Nginx(tmp_path, told, port):
        whole = RawClient(port)
        whole.post(CHAT, ask(Route.CHAT, script))
        client, answer = begin(port, "silent", script)
        client.read_body(answer)
        assert whole.read_answer().status == 504, "nginx lost patience where nothing was sent"
        whole.close()
        client.close()
    stream = read_stream(answer.body)
    assert (stream.content(), stream.finish_reasons(), stream.is_done_last) == ("ab", ["stop"], True)
    assert answer.body.count(b": ping\n") >= 3
    assert not stream.findings
    wait_until(lambda: not live_requests(server.admin_port), "the request that nginx gave up is gone too")


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("is_reset", [True, False], ids=["reset", "close"])
def test_a_client_that_leaves_the_proxy_is_aborted_in_the_engine(
    server: ServerThread, proxy: Nginx, is_stream: bool, is_reset: bool
) -> None:
    before = server.rest()
    client = RawClient(proxy.port)
    script = {"pieces": hex_pieces("a", "b"), "delays_s": [0.0, LONG_S]}
    client.post(CHAT, ask(Route.CHAT, script, stream=is_stream), {"X-Request-Id": "leaves"})
    wait_until(
        lambda: live_requests(server.admin_port).get("leaves", {}).get("completion_tokens") == 1, "one token is made"
    )
    if is_reset:
        client.reset()
    else:
        client.close()
    wait_until(lambda: not live_requests(server.admin_port), "the request is gone")
    server.wait_back(before)


def documented(port: int, upstream: int, certificate: Path, key: Path) -> str:
    """The block of our documentation, with this test's addresses and files."""
    (block,) = re.findall(r"```nginx\n(.*?)```", DOCS.read_text(), re.DOTALL)
    for said, here in {
        "server 127.0.0.1:8000;": f"server 127.0.0.1:{upstream};",
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "/etc/ssl/tidegate.pem": str(certificate),
        "/etc/ssl/tidegate.key": str(key),
    }.items():
        assert block.count(said) == 1
        block = block.replace(said, here)
    return str(block)


def talk(sock: ssl.SSLSocket, data: bytes, mark: bytes) -> bytes:
    sock.sendall(data)
    received = b""
    while mark not in received:
        more = sock.recv(65536)
        assert more, received
        received += more
    return received


def test_the_documented_configuration_works_and_reuses_its_connections(server: ServerThread, tmp_path: Path) -> None:
    pair, port = make_pair(tmp_path, "proxy"), free_port()
    with Nginx(tmp_path, documented(port, server.port, pair.certificate, pair.key), port):
        server.take_log()
        with connect(port, trusting(pair)) as sock:
            body = json.dumps(ask(Route.CHAT, {"pieces": hex_pieces("a"), "finish": "eos"}, stream=True)).encode()
            head = (
                f"POST {CHAT} HTTP/1.1\r\nHost: a.example\r\nContent-Type: application/json\r\n"
                f"X-Forwarded-For: 192.0.2.7\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            for _ in range(4):
                answer = talk(sock, head.encode() + body, b"[DONE]\n\n\r\n0\r\n\r\n")
                assert answer.startswith(b"HTTP/1.1 200")
            big = json.dumps(ask(Route.CHAT, {"pieces": hex_pieces("a")}, user="u", stop=["x" * 10])).encode()
            padded = big + b" " * 3_000_000
            head = head.replace(f"Content-Length: {len(body)}", f"Content-Length: {len(padded)}")
            assert talk(sock, head.encode() + padded, b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        wait_until(lambda: server.look(server.log.getvalue).count(CHAT) >= 5, "all are logged")
    records = [json.loads(line) for line in server.take_log().splitlines()]
    posts = [record for record in records if record.get("route") == CHAT]
    assert len({record["peer"] for record in posts}) == 1, "one connection carried all of them"
    assert {record["forwarded_for"] for record in posts} == {"192.0.2.7, 127.0.0.1"}
    assert request(server.port, "GET", "/health").status == 200
