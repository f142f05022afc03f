"""The application of deploy/ray/serve.yaml behind the HAProxy that Ray starts: what is kept, and what is lost."""

from collections.abc import Iterator

import pytest

from harness.event_stream import read_stream
from harness.faults import LONG_S, Route, ask, hex_pieces
from harness.raw_http import RawClient, request
from harness.serve_site import ServeSite
from harness.server_thread import wait_until
from harness.server_view import live_requests, read_metrics

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

CHAT = Route.CHAT.value
TWO_PIECES = {"pieces": hex_pieces("a", "b"), "finish": "eos"}
OBEYED = {"X-Request-Timeout-Seconds": "0.5", "X-Request-Disconnect-Disabled": "?1"}
LONGER_THAN_ASKED_S = 1.5


@pytest.fixture(scope="module")
def site() -> Iterator[ServeSite]:
    with ServeSite(has_haproxy=True) as running:
        yield running


def begin(site: ServeSite, name: str, headers: dict[str, str] | None = None) -> RawClient:
    """Sends a request for a stream that pauses after its first token; returns its connection when that is made."""
    client = RawClient(site.port)
    body = ask(Route.CHAT, {"pieces": hex_pieces("a", "b"), "delays_s": [0.0, LONG_S]}, stream=True)
    client.post(CHAT, body, {"X-Request-Id": name, **(headers or {})})
    wait_until(lambda: live_requests(site.admin_port).get(name, {}).get("completion_tokens") == 1, "one token is made")
    return client


def test_haproxy_is_what_answers_and_its_open_ports_are_those_of_the_docs(site: ServeSite) -> None:
    listening = site.listening()
    assert listening[site.port] == "127.0.0.1"
    for port in site.open_ports.values():
        assert listening[port] in ("0.0.0.0", "::"), "on every address: to be closed"


def test_whole_and_streamed_answers_are_those_of_the_contract(site: ServeSite) -> None:
    whole = request(site.port, "POST", CHAT, ask(Route.CHAT, TWO_PIECES), {"X-Request-Id": "mine"})
    assert whole.status == 200
    assert whole.json()["choices"][0]["message"]["content"] == "ab"
    assert whole.headers["x-request-id"] == "mine"
    streamed = request(site.port, "POST", CHAT, ask(Route.CHAT, TWO_PIECES, stream=True))
    stream = read_stream(streamed.body)
    assert (stream.content(), stream.is_done_last, stream.findings) == ("ab", True, [])
    assert streamed.headers["tidegate-contract"] == whole.headers["tidegate-contract"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", CHAT, b"{", 400, "invalid_json"),
        ("GET", "/nowhere", None, 404, "route_not_found"),
        ("PUT", CHAT, None, 405, "method_not_allowed"),
    ],
)
def test_errors_are_the_servers_own(
    site: ServeSite, method: str, path: str, body: bytes | None, status: int, code: str
) -> None:
    answer = request(site.port, method, path, body)
    assert (answer.status, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize("headers", [{}, OBEYED], ids=["plain", "told to go on by its caller"])
def test_the_first_token_passes_at_once_and_a_client_that_leaves_is_aborted(
    site: ServeSite, headers: dict[str, str]
) -> None:
    before = read_metrics(site.admin_port)
    with begin(site, "leaves", {name: text for name, text in headers.items() if "Disconnect" in name}) as client:
        answer = client.read_head()
        while read_stream(answer.body).content() != "a":
            chunk = client.read_chunk()
            assert chunk is not None
            answer.body += chunk
    wait_until(lambda: not live_requests(site.admin_port), "the request is gone")
    assert read_metrics(site.admin_port).since(before, "aborts_total", cause="client_gone") == 1


def test_no_caller_sets_serves_own_time_limit(site: ServeSite) -> None:
    script = {**TWO_PIECES, "delays_s": [0.0, LONGER_THAN_ASKED_S]}
    for is_stream in (True, False):
        answer = request(site.port, "POST", CHAT, ask(Route.CHAT, script, stream=is_stream), OBEYED)
        assert (answer.status, answer.is_complete) == (200, True)


def test_a_replica_that_is_killed_cuts_its_stream_and_another_serves(site: ServeSite) -> None:
    with begin(site, "dies") as client:
        answer = client.read_head()
        (replica,) = site.replicas()
        replica.kill()
        client.read_body(answer)
    stream = read_stream(answer.body)
    assert (stream.num_done, stream.finish_reasons(), answer.is_complete) == (0, [], False)
    site.wait_serving()
    wait_until(
        lambda: request(site.port, "POST", CHAT, ask(Route.CHAT, TWO_PIECES)).status == 200, "another serves", 120
    )
