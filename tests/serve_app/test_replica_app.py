"""Our application as Serve calls it: cancelled requests, foreign sockets, doubled ids, the end."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tidegate.http.asgi import AsgiApp, Message, Receive, Scope, Send
from tidegate.serve_app.replica_app import ReplicaApp

GONE = "http.disconnect"


async def nothing() -> None:
    return


async def silence() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


def scope_of(*headers: tuple[bytes, bytes]) -> Scope:
    return {"type": "http", "headers": list(headers), "server": ("10.0.0.1", 30000), "client": ("10.0.0.2", 5)}


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


class Sent(list[Message]):
    async def send(self, message: Message) -> None:
        self.append(message)


def test_a_cancelled_request_hears_that_its_client_has_gone_and_ends_by_its_own_rules() -> None:
    heard: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        heard.append((await receive())["type"])
        await asyncio.sleep(0)
        heard.append("tidied")

    async def check() -> None:
        task = asyncio.ensure_future(ReplicaApp(app, nothing)(scope_of(), silence, Sent().send))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert heard == [GONE, "tidied"]

    run(check)


def test_a_request_that_does_not_end_is_cancelled_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def check() -> None:
        monkeypatch.setattr("tidegate.serve_app.replica_app.LEAVE_S", 0.01)
        task = asyncio.ensure_future(ReplicaApp(app, nothing)(scope_of(), silence, Sent().send))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert ended == ["cancelled"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(check)


def test_what_the_client_says_arrives_in_order_and_nothing_is_left_running() -> None:
    said = [{"type": "http.request", "body": b"a", "more_body": True}, {"type": GONE}]
    heard: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        heard.extend([await receive(), await receive()])

    async def check() -> None:
        messages = iter(said)

        async def take() -> Message:
            return next(messages)

        await ReplicaApp(app, nothing)(scope_of(), take, Sent().send)
        assert heard == said
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(check)


def test_a_client_that_serve_has_forgotten_has_gone() -> None:
    heard: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        heard.extend([(await receive())["type"], (await receive())["type"]])

    async def fail() -> Message:
        raise LookupError

    asyncio.run(ReplicaApp(app, nothing)(scope_of(), fail, Sent().send))
    assert heard == [GONE, GONE]


def test_a_fault_of_the_application_reaches_serve() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(ReplicaApp(app, nothing)(scope_of(), silence, Sent().send))


def test_no_socket_of_this_process_is_taken_for_the_clients() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    asyncio.run(ReplicaApp(app, nothing)(scope_of(), silence, Sent().send))
    assert (seen[0]["server"], seen[0]["client"]) == (None, ("10.0.0.2", 5))


@pytest.mark.parametrize(
    ("asked", "answered", "kept"),
    [([b"a"], b"a", False), ([b"a"], b"req_1", True), ([], b"req_1", True), ([b"a", b"a"], b"a", False)],
)
def test_the_id_that_serve_will_add_is_not_said_twice(asked: list[bytes], answered: bytes, kept: bool) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"x-request-id", answered), (b"x", b"y")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    sent = Sent()
    scope = scope_of(*((b"x-request-id", one) for one in asked))
    asyncio.run(ReplicaApp(app, nothing)(scope, silence, sent.send))
    assert [name for name, _ in sent[0]["headers"]] == ([b"x-request-id", b"x"] if kept else [b"x"])


def lifespan_of(app: AsgiApp, ended: list[str]) -> list[str]:
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    sent = Sent()

    async def take() -> Message:
        return next(messages)

    async def end() -> None:
        ended.append("stopped")

    asyncio.run(ReplicaApp(app, end)({"type": "lifespan"}, take, sent.send))
    return [message["type"] for message in sent]


def test_the_end_comes_before_serve_is_told_of_it() -> None:
    ended: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    assert lifespan_of(app, ended) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert ended == ["stopped"]
