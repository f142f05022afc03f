"""The application of deploy/ray/serve.yaml on a real Ray, behind Serve's own proxy."""

import json
from collections.abc import Iterator

import pytest

from harness.event_stream import read_stream
from harness.faults import LONG_S, Route, ask, hex_pieces
from harness.raw_http import Answer, RawClient, request
from harness.serve_site import QUEUE_DEPTH, ServeSite
from harness.server_thread import wait_until
from harness.server_view import live_requests, read_metrics

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

CHAT = Route.CHAT.value
TWO_PIECES = {"pieces": hex_pieces("a", "b"), "finish": "eos"}
LONGER_THAN_ASKED_S = 2.0


@pytest.fixture(scope="module")
def site() -> Iterator[ServeSite]:
    with ServeSite() as running:
        yield running
        assert running.end() == 0
        wait_until(lambda: not running.processes(), "nothing of the site runs any more", 60.0)


def begin(site: ServeSite, name: str, headers: dict[str, str] | None = None, *, is_stream: bool = True) -> RawClient:
    """Sends a request that makes one token and then waits; returns its connection when the token is made."""
    client = RawClient(site.port)
    body = ask(Route.CHAT, {"pieces": hex_pieces("a", "b"), "delays_s": [0.0, LONG_S]}, stream=is_stream)
    client.post(CHAT, body, {"X-Request-Id": name, **(headers or {})})
    wait_until(lambda: live_requests(site.admin_port).get(name, {}).get("completion_tokens") == 1, "one token is made")
    return client


def wait_empty(site: ServeSite) -> None:
    wait_until(lambda: not live_requests(site.admin_port), "the request is gone")


def read_until_text(client: RawClient, text: str) -> Answer:
    answer = client.read_head()
    while read_stream(answer.body).content() != text:
        chunk = client.read_chunk()
        assert chunk is not None, "the stream ended early"
        answer.body += chunk
    return answer


def test_whole_and_streamed_answers_are_those_of_the_contract(site: ServeSite) -> None:
    whole = request(site.port, "POST", CHAT, ask(Route.CHAT, TWO_PIECES))
    assert whole.status == 200
    assert whole.json()["choices"][0]["message"]["content"] == "ab"
    streamed = request(site.port, "POST", CHAT, ask(Route.CHAT, TWO_PIECES, stream=True))
    stream = read_stream(streamed.body)
    assert (stream.content(), stream.is_done_last, stream.findings) == ("ab", True, [])
    assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert streamed.headers["tidegate-contract"] == whole.headers["tidegate-contract"]


@pytest.mark.parametrize(("given", "is_kept"), [("mine", True), ("no id", False), (None, False)])
def test_every_answer_names_its_request_once(site: ServeSite, given: str | None, is_kept: bool) -> None:
    with RawClient(site.port) as client:
        client.send("GET", "/v1/models", None, {} if given is None else {"X-Request-Id": given})
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.sock.recv(65536)
    found = [line for line in head.decode().lower().split("\r\n") if line.startswith("x-request-id:")]
    assert len(found) == 1
    assert (found[0] == f"x-request-id: {given}") == is_kept


def test_the_first_token_passes_while_the_engine_waits_for_the_second(site: ServeSite) -> None:
    with begin(site, "first") as client:
        read_until_text(client, "a")
    wait_empty(site)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", CHAT, b"{", 400, "invalid_json"),
        ("GET", "/nowhere", None, 404, "route_not_found"),
        ("PUT", CHAT, None, 405, "method_not_allowed"),
        ("POST", CHAT, b'{"model": "other", "messages": [{"role": "user", "content": "hi"}]}', 404, "model_not_found"),
    ],
)
def test_errors_are_the_servers_own(
    site: ServeSite, method: str, path: str, body: bytes | None, status: int, code: str
) -> None:
    answer = request(site.port, method, path, body)
    assert (answer.status, answer.json()["error"]["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    "headers", [{}, {"X-Request-Disconnect-Disabled": "?1"}], ids=["plain", "told to go on by its caller"]
)
def test_a_client_that_leaves_is_aborted_in_the_engine(
    site: ServeSite, headers: dict[str, str], is_stream: bool
) -> None:
    before = read_metrics(site.admin_port)
    begin(site, "leaves", headers, is_stream=is_stream).close()
    wait_empty(site)
    assert read_metrics(site.admin_port).since(before, "aborts_total", cause="client_gone") == 1


def test_no_caller_sets_serves_own_time_limit(site: ServeSite) -> None:
    script = {**TWO_PIECES, "delays_s": [0.0, LONGER_THAN_ASKED_S]}
    for is_stream in (True, False):
        headers = {"X-Request-Timeout-Seconds": "0.5"}
        answer = request(site.port, "POST", CHAT, ask(Route.CHAT, script, stream=is_stream), headers)
        assert answer.status == 200
        assert answer.is_complete


def test_a_full_queue_is_refused_in_the_servers_own_words(site: ServeSite) -> None:
    with begin(site, "fills"):
        refused = request(site.port, "POST", CHAT, ask(Route.CHAT, TWO_PIECES, n=128))
    assert refused.status == 429
    assert refused.json()["error"]["limit"]["value"] == QUEUE_DEPTH
    assert int(refused.headers["retry-after"]) >= 1
    wait_empty(site)


def test_serves_own_pages_are_there(site: ServeSite) -> None:
    assert request(site.port, "GET", "/-/healthz").status == 200
    assert json.loads(request(site.port, "GET", "/-/routes").body) == {"/": "tidegate"}


def test_a_replica_that_is_killed_ends_its_stream_with_one_error_and_another_serves(site: ServeSite) -> None:
    with begin(site, "dies") as client:
        answer = read_until_text(client, "a")
        (replica,) = site.replicas()
        replica.kill()
        client.read_body(answer)
    stream = read_stream(answer.body)
    assert [error["code"] for error in stream.errors] == ["engine_lost"]
    assert (stream.num_done, answer.is_complete) == (0, False)
    site.wait_serving()
    again = request(site.port, "POST", CHAT, ask(Route.CHAT, TWO_PIECES))
    assert (again.status, again.json()["choices"][0]["message"]["content"]) == (200, "ab")
    assert [one.pid for one in site.replicas()] != [replica.pid]
