"""What happens to every request, in memory: headers, errors, limits, and a client that goes away."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest

from tidegate import errors
from tidegate.http.app import AppPorts, make_admin_app, make_public_app
from tidegate.http.request_head import RequestHead
from tidegate.http.settings import HttpSettings
from tidegate.observability.observer import NullObserver
from tidegate.testing.asgi_client import AsgiClient, AsgiConnection

CHAT = "/v1/chat/completions"
ROUTES = ("completions", "embeddings", "score", "rerank", "classify", "tokenize", "detokenize")


class CountingObserver(NullObserver):
    def __init__(self) -> None:
        self.responses: list[tuple[str, str, int]] = []

    def http_response(self, route: str, method: str, status: int) -> None:
        self.responses.append((route, method, status))


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


def ask(app: Any, method: str, target: str, **options: Any) -> AsgiConnection:
    """One request, and a check of what every response must have."""
    connection: AsgiConnection = run(AsgiClient(app).request(method, target, **options))
    assert connection.is_finished
    assert connection.headers["tidegate-contract"] == "1.0"
    assert connection.headers["x-request-id"]
    return connection


def error_of(connection: AsgiConnection) -> dict[str, Any]:
    assert connection.headers["content-type"] == "application/json"
    body = msgspec.json.decode(connection.body)
    assert set(body) == {"error"}
    assert {"message", "type", "param", "code"} <= set(body["error"])
    error: dict[str, Any] = body["error"]
    return error


@pytest.fixture
def service(make: Any) -> Any:
    return make.service()


@pytest.mark.parametrize("target", [CHAT, *(f"/v1/{name}" for name in ROUTES)])
def test_a_call_reaches_the_service_with_what_the_client_sent(service: Any, target: str) -> None:
    headers = [("X-Request-Id", "mine"), ("content-type", "application/json"), ("X-Deadline-Ms", "5")]
    answer = ask(make_public_app(service), "POST", target + "?q=1", headers=headers, body=b'{"a":1}')
    [call] = service.calls
    assert (call.route, call.wire_id, call.body) == (target, "mine", b'{"a":1}')
    assert call.headers["x-deadline-ms"] == "5"
    assert (answer.status, answer.body, answer.headers["x-request-id"]) == (200, b'{"ok":true}', "mine")
    assert (answer.headers["content-length"], answer.headers["content-type"]) == ("11", "application/json")


def test_headers_of_the_reply_are_sent_and_cannot_break_the_line(service: Any, make: Any) -> None:
    service.reply = make.whole(b"{}", headers=[("Tidegate-Ignored-Fields", "a\r\nSet-Cookie: x, é")])
    answer = ask(make_public_app(service), "POST", CHAT, body=b"{}")
    assert answer.headers["tidegate-ignored-fields"] == "a??Set-Cookie: x, ?"


@pytest.mark.parametrize(
    ("method", "target", "status", "body"),
    [
        ("GET", "/healthz", 200, b'{"status":"alive"}'),
        ("GET", "/health", 200, b'{"status":"ready"}'),
        ("GET", "/v1/models", 200, b'{"object":"list","data":[]}'),
        ("GET", "/v1/models/org%2Fa/b", 200, b"org/a/b"),
    ],
)
def test_the_public_gets(service: Any, method: str, target: str, status: int, body: bytes) -> None:
    app = make_public_app(service)
    answer = ask(app, method, target)
    assert (answer.status, answer.body) == (status, body)
    head = ask(app, "HEAD", target)
    assert (head.status, head.body) == (status, b"")
    assert {**head.headers, "x-request-id": ""} == {**answer.headers, "x-request-id": ""}


def test_health_is_503_while_not_ready(service: Any) -> None:
    service.is_well = False
    answer = ask(make_public_app(service), "GET", "/health")
    assert (answer.status, error_of(answer)["code"]) == (503, "engine_unavailable")
    assert 1 <= int(answer.headers["retry-after"]) <= 120


@pytest.mark.parametrize(
    ("method", "target", "options", "status", "code"),
    [
        ("GET", "/nope", {}, 404, "route_not_found"),
        ("POST", "/v1//chat/completions", {"body": b"{}"}, 404, "route_not_found"),
        ("POST", CHAT + "/", {"body": b"{}"}, 404, "route_not_found"),
        ("POST", "/v1/chat%2fcompletions", {"body": b"{}"}, 404, "route_not_found"),
        ("OPTIONS", "/nope", {}, 404, "route_not_found"),
        ("GET", "/v1/models/missing", {}, 404, "model_not_found"),
        ("GET", CHAT, {}, 405, "method_not_allowed"),
        ("BREW", CHAT, {}, 405, "method_not_allowed"),
        ("POST", CHAT, {"headers": [("content-length", "33")], "body": b"{}"}, 413, "body_too_large"),
        ("POST", CHAT, {"headers": [("transfer-encoding", "chunked")], "body": b"x" * 33}, 413, "body_too_large"),
        ("GET", "/" + "a" * 100, {}, 414, "uri_too_long"),
        ("POST", CHAT, {"headers": [("content-type", "text/plain")], "body": b"{}"}, 415, "unsupported_media_type"),
        ("POST", CHAT, {"headers": [("content-encoding", "gzip")], "body": b"{}"}, 415, "unsupported_media_type"),
        ("GET", "/healthz", {"headers": [("a", "b" * 300)]}, 431, "headers_too_large"),
        ("GET", "/healthz", {"headers": [("host", "a"), ("host", "b")]}, 400, "invalid_value"),
    ],
)
def test_what_http_refuses_has_our_shape(
    service: Any, method: str, target: str, options: dict[str, Any], status: int, code: str
) -> None:  # ERR-1
    settings = HttpSettings(body_bytes=32, uri_bytes=64, header_bytes=256, linger_s=0.01)
    answer = ask(make_public_app(service, settings=settings), method, target, **options)
    assert (answer.status, error_of(answer)["code"], answer.headers["x-should-retry"]) == (status, code, "false")
    assert not service.calls


def test_a_refusal_names_the_limit(service: Any) -> None:
    settings = HttpSettings(body_bytes=32, linger_s=0.01)
    answer = ask(make_public_app(service, settings=settings), "POST", CHAT, body=b"x" * 40)
    assert error_of(answer)["limit"] == {"name": "body_bytes", "value": 32, "actual": 40, "scope": "request"}


def test_a_body_of_exactly_the_limit_is_taken(service: Any) -> None:
    answer = ask(make_public_app(service, settings=HttpSettings(body_bytes=32)), "POST", CHAT, body=b"x" * 32)
    assert answer.status == 200
    assert "connection" not in answer.headers


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/vnd.x+json", ""],
)
def test_every_name_of_json_is_taken(service: Any, content_type: str) -> None:
    answer = ask(make_public_app(service), "POST", CHAT, headers=[("content-type", content_type)], body=b"{}")
    assert answer.status == 200


def test_405_and_options_tell_what_is_allowed(service: Any) -> None:
    app = make_public_app(service)
    assert ask(app, "PUT", "/v1/models").headers["allow"] == "GET, HEAD, OPTIONS"
    answer = ask(app, "OPTIONS", CHAT)
    assert (answer.status, answer.headers["allow"], answer.body) == (204, "POST, OPTIONS", b"")
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_body_that_does_not_come_in_time_is_408(service: Any) -> None:  # SLOW-3
    async def go() -> AsgiConnection:
        app = make_public_app(service, settings=HttpSettings(body_timeout_s=0.01))
        connection = AsgiClient(app).open("POST", CHAT, headers=[("content-length", "9")], body=None)
        connection.feed(b"{", more=True)
        await connection.ended()
        return connection

    answer = run(go())
    assert (answer.status, error_of(answer)["code"]) == (408, "slow_request")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("parts", [[b'{"a":1}'], [b'{"a"', b":1}"], [b'{"a":1}', b""], [b"", b'{"a":1}', b""]])
def test_a_body_may_come_in_any_parts(service: Any, parts: list[bytes]) -> None:
    async def go() -> None:
        connection = AsgiClient(make_public_app(service)).open(
            "POST", CHAT, headers=[("content-length", "7")], body=None
        )
        for index, part in enumerate(parts):
            connection.feed(part, more=index < len(parts) - 1)
        await connection.ended()

    run(go())
    assert service.calls[0].body == b'{"a":1}'


def test_a_client_that_leaves_inside_its_body_is_no_error(service: Any, caplog: pytest.LogCaptureFixture) -> None:
    observer = CountingObserver()

    async def go() -> AsgiConnection:  # SLOW-5
        app = make_public_app(service, ports=AppPorts(observer=observer))
        connection = AsgiClient(app).open("POST", CHAT, headers=[("content-length", "9")], body=None)
        connection.feed(b"{", more=True)
        await connection.settle()
        connection.disconnect()
        await connection.ended()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return connection

    assert run(go()).status is None
    assert not service.calls
    assert not caplog.records
    assert not observer.responses


@pytest.mark.parametrize(
    "cause",
    [RuntimeError("secret /etc/passwd 0x7f00"), errors.InternalError("secret"), asyncio.CancelledError("inner")],
)
def test_our_own_failures_show_nothing(
    service: Any, cause: BaseException, caplog: pytest.LogCaptureFixture
) -> None:  # ERR-4
    service.raise_(cause)
    with caplog.at_level(logging.ERROR):
        answer = ask(make_public_app(service), "POST", CHAT, body=b"{}")
    assert (answer.status, error_of(answer)["code"]) == (500, "internal_error")
    assert b"secret" not in answer.body
    assert [record.name for record in caplog.records] == (
        [] if isinstance(cause, errors.ServeError) else ["tidegate.http.app"]
    )


@pytest.mark.parametrize(("setting", "status"), [(429, 429), (503, 503)])
def test_the_status_of_a_full_queue_is_a_setting(service: Any, setting: int, status: int) -> None:
    service.raise_(errors.QueueFull("full", retry_after_s=3))
    answer = ask(make_public_app(service, settings=HttpSettings(queue_full_status=setting)), "POST", CHAT, body=b"{}")
    assert (answer.status, error_of(answer)["code"], answer.headers["retry-after"]) == (status, "queue_full", "3")


def test_a_client_that_leaves_before_the_status_cancels_the_call(service: Any) -> None:
    async def go() -> AsgiConnection:
        service.hang()
        connection = AsgiClient(make_public_app(service)).open("POST", CHAT, body=b"{}")
        await connection.settle()
        assert len(service.calls) == 1
        connection.disconnect()
        await connection.ended()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return connection

    assert run(go()).status is None
    assert service.num_cancelled == 1


def test_the_call_is_not_cancelled_while_the_client_waits(service: Any) -> None:
    async def go() -> None:
        service.hang()
        connection = AsgiClient(make_public_app(service)).open("POST", CHAT, body=b"{}")
        await connection.settle()
        assert not connection.task.done()
        assert service.num_cancelled == 0
        connection.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connection.ended()

    run(go())
    assert service.num_cancelled == 1


def test_every_spelling_of_every_route_is_authorised_but_the_open_ones(service: Any, make: Any) -> None:  # SEC-10
    def refuse(head: RequestHead) -> None:
        raise errors.InvalidApiKey("No.")

    for app, is_open in (
        (make_public_app(service, ports=AppPorts(authorise=refuse)), {"/healthz", "/health"}),
        (make_admin_app(make.admin(), make.operator(), ports=AppPorts(authorise=refuse)), {"/healthz", "/readyz"}),
    ):
        assert app.router.patterns
        for pattern in app.router.patterns:
            path = pattern.replace("{id}", "x")
            for method in ("GET", "POST", "HEAD", "OPTIONS", "DELETE", "BREW"):
                assert (ask(app, method, path).status == 401) is (path not in is_open)
                for other in ("/" + path, path + "/", path.upper(), path.replace("/", "%2f"), "/nope", "@google.com"):
                    assert ask(app, method, other).status == 401


@pytest.mark.parametrize("host", ["evil/?", "x/#", "a/?x=", ""])
def test_the_host_header_does_not_choose_the_route(service: Any, host: str) -> None:  # SEC-9
    def refuse(head: RequestHead) -> None:
        raise errors.InvalidApiKey("No.")

    app = make_public_app(service, ports=AppPorts(authorise=refuse))
    assert ask(app, "POST", CHAT, headers=[("host", host)], body=b"{}").status == 401


def test_every_status_is_counted_under_a_pattern_and_a_known_method(service: Any) -> None:
    observer = CountingObserver()
    app = make_public_app(service, ports=AppPorts(observer=observer))
    ask(app, "GET", "/v1/models/org/name")
    ask(app, "BREW", CHAT)
    ask(app, "GET", "/%00secret")
    ask(app, "POST", CHAT, body=b"{}")
    assert observer.responses == [
        ("/v1/models/{id}", "GET", 200),
        (CHAT, "other", 405),
        ("unmatched", "GET", 404),
        (CHAT, "POST", 200),
    ]


def test_the_admin_gets(make: Any) -> None:
    admin = make.admin()
    app = make_admin_app(admin, make.operator())
    assert ask(app, "GET", "/admin/v1/requests").body == b'{"requests":[]}'
    assert ask(app, "GET", "/admin/v1/engine").body == b'{"engine":1}'
    assert ask(app, "GET", "/healthz").status == ask(app, "GET", "/readyz").status == 200
    plain = ask(app, "GET", "/metrics")
    assert (plain.headers["content-type"], plain.body) == ("text/plain; version=0.0.4", b"up 1\n")
    assert "openmetrics" in ask(app, "GET", "/metrics", headers=[("accept", "x-openmetrics")]).headers["content-type"]
    admin.why_not, admin.liveness = errors.EngineUnavailable("draining", retry_after_s=7), False
    answer = ask(app, "GET", "/readyz")
    assert (answer.status, error_of(answer)["message"], answer.headers["retry-after"]) == (503, "draining", "7")
    assert ask(app, "GET", "/healthz").status == 503
    assert ask(app, "POST", "/v1/chat/completions", body=b"{}").status == 404


def test_the_lifespan_is_accepted_and_other_protocols_are_not(service: Any) -> None:
    async def go() -> list[str]:
        messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
        sent: list[str] = []

        async def receive() -> Any:
            return messages.pop(0)

        async def send(message: Any) -> None:
            sent.append(message["type"])

        app = make_public_app(service)
        await app({"type": "lifespan"}, receive, send)
        await app({"type": "websocket"}, receive, send)
        return sent

    assert run(go()) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
