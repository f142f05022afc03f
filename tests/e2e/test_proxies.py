"""Behind a real nginx: as it comes, and with a short patience. `deploy/` has how we would run it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.faults import LONG_S, Route, ask, hex_pieces
from harness.nginx import Nginx, pass_to
from harness.raw_http import Answer, RawClient
from harness.server_thread import ServerThread, wait_until
from harness.server_view import live_requests
from harness.sockets import free_port

pytestmark = pytest.mark.process

CHAT = Route.CHAT.value
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
