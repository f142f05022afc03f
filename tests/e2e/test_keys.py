"""Keys on a running server: the first one closes it, changes need no restart, and no trick gets around them."""

import contextlib
import json
import stat
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from harness.event_stream import read_stream
from harness.keys import add_key, bearing, keys_in, revoke_key
from harness.raw_http import Answer, RawClient, request
from harness.server_process import ServerProcess
from harness.server_thread import ServerThread, wait_until
from harness.server_view import ended_requests, read_metrics

pytestmark = pytest.mark.process

CHAT, MODELS = "/v1/chat/completions", "/v1/models"
BODY = {
    "model": "scripted",
    "messages": [{"role": "user", "content": "hi"}],
    "x_script": {"pieces": ["48", "69"]},
}
CREDENTIAL = "0123456789abcdef0123456789abcdef"
READING = ("/v1/embeddings", "/v1/score", "/v1/rerank", "/v1/classify")
PROTECTED = (
    *((path, "POST") for path in (CHAT, "/v1/completions", *READING, "/v1/tokenize", "/v1/detokenize")),
    (MODELS, "GET"),
)
HOSTS = ("evil/?", "x/#", "a/?x=", "127.0.0.1/healthz?")


def write_credential(folder: Path) -> Path:
    file = folder / "admin-token"
    file.write_text(CREDENTIAL + "\n")
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module", params=["granian", "uvicorn"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    file = write_credential(tmp_path_factory.mktemp("credential"))
    with ServerThread("scripted", server__http=request.param, auth__admin_token_file=str(file)) as running:
        yield running


@pytest.fixture(scope="module")
def key(server: ServerThread) -> str:
    """The first key, made while the server runs."""
    assert request(server.port, "GET", MODELS).status == 200
    made = add_key(state_dir(server), "first")
    wait_until(lambda: request(server.port, "GET", MODELS).status == 401, "closed for everybody")
    return made


def state_dir(server: ServerThread) -> str:
    assert server.settings.server.state_dir is not None
    return server.settings.server.state_dir


def raw(port: int, head: str) -> int:
    """Sends a head as it stands and returns the status; 0 when the connection was closed instead."""
    with RawClient(port) as client, contextlib.suppress(ConnectionError):
        client.sock.sendall(head.encode("latin-1"))
        return client.read_head().status
    return 0


def test_the_first_key_closes_a_running_server_for_everybody_else(server: ServerThread, key: str) -> None:
    assert request(server.port, "POST", CHAT, BODY).status == 401
    answer = request(server.port, "POST", CHAT, BODY, bearing(key))
    assert answer.status == 200
    assert answer.json()["choices"][0]["message"]["content"] == "Hi"
    for path in ("/healthz", "/health"):
        assert request(server.port, "GET", path).status == 200


def test_a_key_is_made_and_revoked_without_a_restart(server: ServerThread, key: str) -> None:
    second = add_key(state_dir(server), "second")
    wait_until(lambda: request(server.port, "GET", MODELS, headers=bearing(second)).status == 200, "the second key")
    revoke_key(state_dir(server), "second")
    wait_until(lambda: request(server.port, "GET", MODELS, headers=bearing(second)).status == 401, "its end")
    assert request(server.port, "GET", MODELS, headers=bearing(key)).status == 200


@pytest.mark.parametrize("host", HOSTS)
def test_no_host_header_gets_around_a_key(server: ServerThread, key: str, host: str) -> None:  # SEC-9
    for path, method in PROTECTED:
        for target in (path, f"http://127.0.0.1{path}", f"{path}?/healthz"):
            head = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"
            assert raw(server.port, head) == 401


@pytest.mark.parametrize("target", ["@google.com", "//healthz", "/healthz/", "/healthz/../v1/models", "/HEALTHZ", "*"])
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS"])
def test_no_target_gets_around_a_key(server: ServerThread, key: str, method: str, target: str) -> None:  # SEC-9 SEC-10
    assert raw(server.port, f"{method} {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n") in (0, 400, 401)


def test_odd_authorization_headers_are_401_on_the_wire(server: ServerThread, key: str) -> None:  # ERR-2
    for value in ("", "Bearer", f"Basic {key}", key, "Bearer " + "k" * 10_240, f"Bearer {key}, x", "Bearer Zo\xeb"):
        head = f"GET {MODELS} HTTP/1.1\r\nHost: a\r\nAuthorization: {value}\r\n\r\n"
        with RawClient(server.port) as client:
            client.sock.sendall(head.encode("latin-1"))
            answer = client.read_answer("GET")
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert answer.json()["error"]["code"] == "invalid_api_key"
        assert key.encode() not in answer.body
    twice = f"GET {MODELS} HTTP/1.1\r\nHost: a\r\n" + f"Authorization: Bearer {key}\r\n" * 2 + "\r\n"
    assert raw(server.port, twice) == 401


def test_logs_and_metrics_name_the_key_and_never_hold_it(server: ServerThread, key: str) -> None:  # SEC-29
    server.take_log()
    before = read_metrics(server.admin_port)
    for number in range(2):
        headers = bearing(key) | {"X-Request-Id": f"named-{number}"}
        assert request(server.port, "POST", CHAT, BODY | {"stream": bool(number)}, headers).status == 200
    wrong = key[:-3] + "abc"
    assert request(server.port, "POST", CHAT, BODY, bearing(wrong)).status == 401
    wait_until(lambda: "named-1" in server.look(server.log.getvalue), "both in the log")
    log = server.take_log()
    ended = ended_requests(log)
    assert {ended[name]["key_name"] for name in ("named-0", "named-1")} == {"first"}
    for secret in (key, wrong, key.rpartition("_")[2], wrong.rpartition("_")[2][:-3]):
        assert secret not in log
    after = read_metrics(server.admin_port)
    assert after.since(before, "key_requests_total", key="first") == 2
    assert after.since(before, "key_tokens_total", key="first", kind="generation") >= 4


def test_a_key_for_some_routes_and_one_that_expired(server: ServerThread, key: str) -> None:  # ERR-2
    narrow = add_key(state_dir(server), "narrow", routes=frozenset({MODELS}))
    expired = add_key(state_dir(server), "expired", expires_at=1.0)
    wait_until(lambda: request(server.port, "GET", MODELS, headers=bearing(narrow)).status == 200, "the narrow key")
    for method in ("POST", "GET", "OPTIONS"):
        assert request(server.port, method, CHAT, BODY, bearing(narrow)).status == 403
    assert request(server.port, "POST", CHAT, BODY, bearing(narrow)).json()["error"]["code"] == "route_not_allowed"
    assert request(server.port, "GET", MODELS, headers=bearing(expired)).status == 401


def test_the_official_client_raises_its_own_errors(server: ServerThread, key: str) -> None:
    def models(api_key: str) -> list[str]:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key=api_key, max_retries=0) as client:
            return [model.id for model in client.models.list()]

    assert models(key) == ["scripted"]
    with pytest.raises(openai.AuthenticationError) as caught:
        models("sk-wrong")
    assert (caught.value.code, caught.value.type) == ("invalid_api_key", "authentication_error")


def test_the_admin_listener_has_its_own_credential(server: ServerThread, key: str) -> None:
    def admin(path: str, credential: str | None) -> Answer:
        return request(server.admin_port, "GET", path, headers=None if credential is None else bearing(credential))

    for path in ("/admin/v1/requests", "/admin/v1/engine", "/nope"):
        assert admin(path, None).status == admin(path, key).status == 401
    assert admin("/admin/v1/engine", CREDENTIAL).status == 200
    assert admin("/nope", CREDENTIAL).status == 404
    assert request(server.port, "GET", MODELS, headers=bearing(CREDENTIAL)).status == 401
    for path in ("/healthz", "/readyz", "/metrics"):
        assert admin(path, None).status == 200


def test_every_worker_is_closed_by_the_first_key_and_notices_its_end(tmp_path: Path) -> None:
    settings = {"server__workers": 2, "server__state_dir": tmp_path, "auth__open_metrics": False}
    with ServerProcess("scripted", **settings, auth__admin_token_file=write_credential(tmp_path)) as running:
        assert request(running.admin_port, "GET", "/metrics").status == 401
        assert request(running.admin_port, "GET", "/metrics", headers=bearing(CREDENTIAL)).status == 200
        assert request(running.admin_port, "GET", "/readyz").status == 200
        assert request(running.port, "GET", MODELS).status == 200
        key = add_key(tmp_path, "shared")

        def seen(headers: dict[str, str] | None = None) -> set[int]:
            """The statuses of as many connections as reach both workers."""
            return {request(running.port, "GET", MODELS, headers=headers).status for _ in range(24)}

        wait_until(lambda: seen() == {401}, "every worker closed")
        assert seen(bearing(key)) == {200}
        streamed = request(running.port, "POST", CHAT, BODY | {"stream": True}, bearing(key))
        assert read_stream(streamed.body).content() == "Hi"
        revoke_key(tmp_path, "shared")
        wait_until(lambda: seen(bearing(key)) == {401}, "the key's end in every worker")
        running.signal()
        assert running.wait() == 0
        log = "".join(running.lines)
    assert key.rpartition("_")[2] not in log
    assert "shared" in {json.loads(line).get("key_name") for line in log.splitlines() if line.startswith("{")}
    [stored] = keys_in(tmp_path).list_keys()
    assert stored.last_used_at is not None
    assert stat.S_IMODE(keys_in(tmp_path).path.stat().st_mode) == 0o600


def test_a_pipelined_request_needs_its_own_key(server: ServerThread, key: str) -> None:  # SEC-10
    first = f"GET {MODELS} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\r\n"
    with RawClient(server.port) as client:
        client.sock.sendall((first + f"GET {MODELS} HTTP/1.1\r\nHost: a\r\n\r\n").encode())
        assert [client.read_answer("GET").status for _ in range(2)] == [200, 401]
