"""What callers may tell Serve and what Serve may tell them, with applications in place of Serve's."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tidegate.contract.headers import CONTRACT
from tidegate.http.asgi import AsgiApp, Message, Receive, Scope, Send
from tidegate.serve_app.proxy_guard import OBEYED, ProxyGuard

OURS = (CONTRACT.lower().encode(), b"1.0")
STREAM = (b"content-type", b"text/event-stream; charset=utf-8")
PLAIN = (b"content-type", b"text/plain")


class Lost(Exception):
    """What Serve's proxies may raise."""


async def never() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def run(app: AsgiApp, *headers: tuple[bytes, bytes], path: str = "/v1/models") -> list[Message]:
    """What a caller gets, message by message; an exception comes last as its name."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def call() -> None:
        scope: Scope = {"type": "http", "path": path, "headers": list(headers)}
        try:
            await ProxyGuard(app)(scope, never, send)
        except Lost:
            sent.append({"type": "raised"})

    asyncio.run(call())
    return sent


def answering(
    status: int, *headers: tuple[bytes, bytes], bodies: tuple[bytes, ...] = (b"",), ends: bool = True
) -> AsgiApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})
        for number, body in enumerate(bodies):
            is_last = ends and number == len(bodies) - 1
            await send({"type": "http.response.body", "body": body, "more_body": not is_last})

    return app


def raising(app: AsgiApp | None = None) -> AsgiApp:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        if app is not None:
            await app(scope, receive, send)
        raise Lost

    return broken


def seen_by_serve(*headers: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    seen: list[tuple[bytes, bytes]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend(scope["headers"])
        await answering(200, OURS)(scope, receive, send)

    run(app, *headers)
    return seen


@pytest.mark.parametrize("name", sorted(OBEYED))
@pytest.mark.parametrize("spell", [bytes.lower, bytes.upper, bytes.title], ids=["lower", "upper", "title"])
def test_headers_that_serve_obeys_go_no_further(name: bytes, spell: Callable[[bytes], bytes]) -> None:
    kept = (b"x-priority", b"5")
    assert seen_by_serve((spell(name), b"1"), kept, (spell(name), b"?1")) == [kept]


@pytest.mark.parametrize("ids", [[b"abc", b"abc"], [b"a b"], [b""], [b"x" * 129], ["ü".encode()]])
def test_an_id_that_the_server_would_not_take_is_not_serves_either(ids: list[bytes]) -> None:
    assert seen_by_serve(*((b"X-Request-Id", one) for one in ids)) == []


def test_a_good_id_passes() -> None:
    assert seen_by_serve((b"x-request-id", b"abc-1")) == [(b"x-request-id", b"abc-1")]


def test_an_answer_of_the_server_passes_as_it_is() -> None:
    app = answering(429, OURS, (b"retry-after", b"1"), bodies=(b"{", b"}"))
    start, *bodies = run(app)
    assert (start["status"], start["headers"]) == (429, [OURS, (b"retry-after", b"1")])
    assert [(one["body"], one["more_body"]) for one in bodies] == [(b"{", True), (b"}", False)]


@pytest.mark.parametrize(
    ("status", "told", "code"),
    [
        (404, 404, "route_not_found"),
        (408, 504, "deadline_exceeded"),
        (429, 429, "queue_full"),
        (503, 503, "no_capacity"),
        (500, 500, "internal_error"),
        (499, 500, "internal_error"),
        (200, 500, "internal_error"),
    ],
)
def test_what_serve_says_itself_has_the_one_shape_and_none_of_its_words(status: int, told: int, code: str) -> None:
    app = answering(status, PLAIN, (b"x-request-id", b"id-1"), bodies=(b"Traceback", b" of Serve"))
    start, body = run(app)
    fields = dict(start["headers"])
    assert (start["status"], fields[b"content-type"], fields[b"x-request-id"]) == (told, b"application/json", b"id-1")
    assert OURS[0] in fields
    assert int(fields[b"content-length"]) == len(body["body"])
    assert json.loads(body["body"])["error"]["code"] == code
    assert b"Serve" not in body["body"].replace(b"Serve's own time", b"").replace(b"Serve failed", b"")
    assert (b"retry-after" in fields) == (told in (429, 503))


@pytest.mark.parametrize(("given", "told"), [(b"7", b"7"), (b"soon", b"1"), (None, b"1")])
def test_how_long_to_wait_is_as_serve_says(given: bytes | None, told: bytes) -> None:
    headers = [PLAIN] if given is None else [PLAIN, (b"Retry-After", given)]
    start, _ = run(answering(503, *headers, bodies=(b"full",)))
    assert dict(start["headers"])[b"retry-after"] == told


@pytest.mark.parametrize("path", ["/-/healthz", "/-/routes"])
def test_serves_own_pages_are_left_alone(path: str) -> None:
    app = answering(200, PLAIN, bodies=(b"success",))
    assert [message.get("body") for message in run(app, path=path)] == [None, b"success"]


EVENT = b'data: {"id":"1"}\n\n'
OWN_ERROR = b'data: {"error":{"code":"deadline_exceeded"}}\n\n'


def error_events(sent: list[Message]) -> list[str]:
    bodies = [message["body"] for message in sent if message["type"] == "http.response.body"]
    return [json.loads(body[6:])["error"]["code"] for body in bodies if body.startswith(b'data: {"error"')]


@pytest.mark.parametrize("end", [lambda app: app, raising], ids=["returns", "raises"])
@pytest.mark.parametrize(
    ("bodies", "codes"),
    [((EVENT,), ["engine_lost"]), ((EVENT, OWN_ERROR), ["deadline_exceeded"]), ((), ["engine_lost"])],
    ids=["cut", "told", "empty"],
)
def test_a_stream_that_breaks_off_has_exactly_one_error_event(
    end: Callable[[AsgiApp], AsgiApp], bodies: tuple[bytes, ...], codes: list[str]
) -> None:
    sent = run(end(answering(200, OURS, STREAM, bodies=bodies, ends=False)))
    assert error_events(sent) == codes
    assert all(message["more_body"] for message in sent if message["type"] == "http.response.body"), "left unfinished"


def test_a_whole_answer_that_breaks_off_is_only_cut() -> None:
    app = answering(200, OURS, (b"content-type", b"application/json"), bodies=(b'{"id"',), ends=False)
    assert [message.get("body") for message in run(raising(app))] == [None, b'{"id"', None]


def test_a_finished_stream_gets_nothing_more() -> None:
    app = answering(200, OURS, STREAM, bodies=(EVENT, b"data: [DONE]\n\n"))
    assert error_events(run(raising(app))) == error_events(run(app)) == []


@pytest.mark.parametrize("app", [raising(), raising(answering(503, PLAIN, bodies=(b"x",), ends=False))])
def test_what_serve_never_answered_or_broke_off_is_answered(app: AsgiApp) -> None:
    start, body, raised = run(app)
    assert start["status"] in (500, 503)
    assert json.loads(body["body"])["error"]["message"]
    assert raised == {"type": "raised"}


def test_other_scopes_are_not_touched() -> None:
    heard: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        heard.append(scope)

    async def call() -> None:
        done: Awaitable[None] = ProxyGuard(app)({"type": "websocket"}, never, never)  # type: ignore[arg-type]
        await done

    asyncio.run(call())
    assert heard == [{"type": "websocket"}]
