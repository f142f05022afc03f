"""Behind a real nginx and a real Envoy, told what `deploy/` tells people to tell them, but for addresses and files."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.certificates import Pair, make_pair, trusting
from harness.deployments import deployed, documents, replaced
from harness.envoy import Envoy
from harness.event_stream import read_stream
from harness.faults import LONG_S, Route, ask, hex_pieces
from harness.nginx import Nginx
from harness.server_thread import ServerThread, wait_until
from harness.server_view import live_requests
from harness.sockets import free_port
from harness.tls_client import TlsClient, ask_over_tls
from tidegate.cli.settings import Settings
from tidegate.http.settings import ServerSettings

pytestmark = pytest.mark.process

CHAT = Route.CHAT.value
UPSTREAM = "127.0.0.1:8000"
OBEYED_BY_SERVE = {"X-Request-Timeout-Seconds": "1", "X-Request-Disconnect-Disabled": "?1"}
SUFFIXES = {"k": 1024, "m": 1024 * 1024}


def make_nginx(folder: Path, port: int, upstream: int, pair: Pair) -> Nginx:
    changes = {
        f"server {UPSTREAM};": f"server 127.0.0.1:{upstream};",
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "/etc/ssl/tidegate.pem": str(pair.certificate),
        "/etc/ssl/tidegate.key": str(pair.key),
    }
    return Nginx(folder, replaced(deployed("nginx/tidegate.conf"), changes), port)


def make_envoy(folder: Path, port: int, upstream: int, pair: Pair) -> Envoy:
    changes = {
        "address: 127.0.0.1, port_value: 8000": f"address: 127.0.0.1, port_value: {upstream}",
        "address: 0.0.0.0, port_value: 443": f"address: 127.0.0.1, port_value: {port}",
        "/etc/ssl/tidegate.pem": str(pair.certificate),
        "/etc/ssl/tidegate.key": str(pair.key),
        "interval: 5s": "interval: 0.2s",
    }
    return Envoy(folder, replaced(deployed("envoy/envoy.yaml"), changes), port)


Make = Callable[[Path, int, int, Pair], Nginx | Envoy]
MAKERS: dict[str, Make] = {"nginx": make_nginx, "envoy": make_envoy}


@dataclass(frozen=True, slots=True)
class Scene:
    """A server of one row without a queue, and a proxy in front of it."""

    server: ServerThread
    port: int
    context: ssl.SSLContext

    def begin(self, name: str, *, is_stream: bool = True) -> TlsClient:
        """Sends a request that makes one token and then waits; returns its connection when the token is made."""
        client = TlsClient(self.port, self.context)
        body = ask(Route.CHAT, {"pieces": hex_pieces("a", "b"), "delays_s": [0.0, LONG_S]}, stream=is_stream)
        client.post(CHAT, body, {"X-Request-Id": name})
        wait_until(lambda: self.live().get(name, {}).get("completion_tokens") == 1, "one token is made")
        return client

    def live(self) -> dict[str, dict[str, object]]:
        return live_requests(self.server.admin_port)

    def wait_empty(self) -> None:
        wait_until(lambda: not self.live(), "the request is gone")


@pytest.fixture(scope="module", params=sorted(MAKERS))
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder, port = tmp_path_factory.mktemp(request.param), free_port()
    pair = make_pair(folder, "proxy")
    settings = {"engine__max_sequences": 1, "admission__queue_depth": 0}
    with ServerThread("scripted", **settings) as server, MAKERS[request.param](folder, port, server.port, pair):
        yield Scene(server, port, trusting(pair))


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_the_proxy_itself_finds_no_fault_with_the_file(name: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path, free_port(), 8000, make_pair(tmp_path, "proxy")).check()


def test_the_first_token_passes_while_the_engine_waits_for_the_second(scene: Scene) -> None:
    with scene.begin("first") as client:
        answer = client.read_head()
        assert (answer.status, answer.headers["x-request-id"]) == (200, "first")
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert "content-encoding" not in answer.headers
        while read_stream(answer.body).content() != "a":
            chunk = client.read_chunk()
            assert chunk is not None
            answer.body += chunk
    scene.wait_empty()


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "whole"])
def test_a_client_that_leaves_is_aborted_in_the_engine(scene: Scene, is_stream: bool) -> None:
    before = scene.server.rest()
    scene.begin("leaves", is_stream=is_stream).close()
    scene.wait_empty()
    scene.server.wait_back(before)


def test_a_refusal_of_the_server_arrives_as_it_is(scene: Scene) -> None:
    with scene.begin("fills"), TlsClient(scene.port, scene.context) as client:
        client.post(CHAT, ask(Route.CHAT))
        refused = client.read_answer()
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.headers["x-should-retry"] == "true"
    assert refused.json()["error"]["limit"]["name"] == "queue_depth"
    scene.wait_empty()


def test_connections_to_the_server_are_used_again_and_claims_of_clients_are_kept_apart(scene: Scene) -> None:
    scene.server.take_log()
    script = {"pieces": hex_pieces("a"), "finish": "eos"}
    with TlsClient(scene.port, scene.context) as client:
        for padding in (0, 0, 3_000_000):
            body = json.dumps(ask(Route.CHAT, script)).encode() + b" " * padding
            client.send("POST", CHAT, body, {"X-Forwarded-For": "192.0.2.7", "Content-Type": "application/json"})
            assert client.read_answer().status == 200
    wait_until(lambda: scene.server.look(scene.server.log.getvalue).count(CHAT) >= 3, "all are logged")
    records = [json.loads(line) for line in scene.server.take_log().splitlines()]
    posts = [record for record in records if record.get("route") == CHAT and "peer" in record]
    assert len({record["peer"] for record in posts}) == 1, "one connection carried all of them"
    (claim,) = {record["forwarded_for"].replace(" ", "") for record in posts}
    assert claim.startswith("192.0.2.7,"), "what the client claims comes before what the proxy knows"


def test_only_the_public_routes_are_reachable(scene: Scene) -> None:
    for path in ("/metrics", "/readyz", "/admin/v1/requests"):
        answer = ask_over_tls(scene.port, scene.context, "GET", path)
        assert answer.status == 404
        assert b"tidegate" not in answer.body
    assert ask_over_tls(scene.port, scene.context, "GET", "/v1/models").status == 200


class Echo:
    """A server that answers one request with the head that it was sent, for each connection."""

    def __init__(self) -> None:
        self._sock = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._sock.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="echo")

    def __enter__(self) -> "Echo":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(30)
        self._sock.close()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._sock.accept()
            except OSError:
                return
            with connection:
                head = b""
                while b"\r\n\r\n" not in head and (more := connection.recv(65536)):
                    head += more
                start = f"HTTP/1.1 200 OK\r\nContent-Length: {len(head)}\r\nConnection: close\r\n\r\n"
                connection.sendall(start.encode() + head)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_headers_that_ray_serve_would_obey_do_not_pass(name: str, tmp_path: Path) -> None:
    pair, port = make_pair(tmp_path, "proxy"), free_port()
    with Echo() as echo, MAKERS[name](tmp_path, port, echo.port, pair):
        told = ask_over_tls(port, trusting(pair), "GET", "/v1/models", headers={**OBEYED_BY_SERVE, "X-Kept": "yes"})
    head = told.body.decode().lower()
    assert "x-kept: yes" in head
    assert not [header for header in OBEYED_BY_SERVE if header.lower() in head]


def test_nginx_takes_the_bodies_that_the_server_takes() -> None:
    text = deployed("nginx/tidegate.conf")
    given = text.partition("client_max_body_size ")[2].partition(";")[0]
    assert int(given[:-1]) * SUFFIXES[given[-1]] == Settings().limits.body_bytes
    assert f"client_body_timeout {Settings().server.body_timeout_s:.0f}s;" in text


def test_no_proxy_keeps_idle_connections_for_as_long_as_the_server() -> None:
    """Else a request could go out on a connection that the server closes at that moment, and nobody may repeat it."""
    kept = [deployed("nginx/tidegate.conf").partition("keepalive_timeout ")[2].partition("s;")[0]]
    (cluster,) = documents("envoy/envoy.yaml")[0]["static_resources"]["clusters"]
    (options,) = cluster["typed_extension_protocol_options"].values()
    kept.append(options["common_http_protocol_options"]["idle_timeout"].removesuffix("s"))
    assert all(0 < float(seconds) < ServerSettings().header_timeout_s for seconds in kept)


def test_silence_is_broken_long_before_a_proxy_loses_patience() -> None:
    text, heartbeat_s = deployed("nginx/tidegate.conf"), Settings().server.heartbeat_s
    assert float(text.partition("proxy_read_timeout ")[2].partition("s;")[0]) > 2 * heartbeat_s
    (listener,) = documents("envoy/envoy.yaml")[0]["static_resources"]["listeners"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    assert float(manager["stream_idle_timeout"].removesuffix("s")) > 2 * heartbeat_s
