"""Streams in memory: order of bytes, heartbeats, failures, and who is told why a stream ended."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest

from tidegate.errors import DeadlineExceeded, EngineLost
from tidegate.http.app import AppPorts, make_public_app
from tidegate.http.settings import HttpSettings
from tidegate.http.sse import PING
from tidegate.testing.asgi_client import AsgiClient, AsgiConnection

CHAT = "/v1/chat/completions"
DONE = b"data: [DONE]\n\n"


class ManualClock:
    def __init__(self) -> None:
        self.instant = 1000.0

    def now(self) -> float:
        return self.instant

    def wall(self) -> float:
        return self.instant


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


def open_stream(make: Any, stream: Any, **options: Any) -> AsgiConnection:
    service = make.service()
    service.reply = stream
    return AsgiClient(make_public_app(service, **options)).open("POST", CHAT, body=b"{}")


async def assert_nothing_is_left() -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_stream_is_sent_in_order_and_ended(make: Any) -> None:
    async def go() -> None:
        stream = make.stream(b"data: 1\n\n")
        connection = open_stream(make, stream)
        await connection.settle()
        assert connection.pieces == [b"data: 1\n\n"]
        stream.put(b"data: 2\n\n")
        stream.put(DONE)
        stream.end()
        await connection.ended()
        assert connection.pieces == [b"data: 1\n\n", b"data: 2\n\n" + DONE, b""]
        assert connection.is_finished
        assert stream.causes == ["done"]
        await assert_nothing_is_left()

    run(go())


def test_an_event_stream_says_what_it_is(make: Any) -> None:  # SSE-1
    async def go() -> dict[str, str]:
        connection = open_stream(make, make.stream(DONE, ends=True))
        await connection.ended()
        return connection.headers

    headers = run(go())
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-cache", "no")
    assert (headers["tidegate-served-revision"], headers["tidegate-contract"]) == ("rev-1", "1.0")
    assert not {"content-length", "content-encoding", "connection"} & set(headers)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (EngineLost("The engine died."), "engine_lost"),
        (DeadlineExceeded("Late."), "deadline_exceeded"),
        (ValueError("secret"), "internal_error"),
    ],
)
def test_a_failure_after_the_status_is_one_event_and_no_end(
    make: Any, failure: Exception, code: str, caplog: pytest.LogCaptureFixture
) -> None:  # SSE-4
    async def go() -> AsgiConnection:
        stream = make.stream(b"data: 1\n\n")
        connection = open_stream(make, stream)
        await connection.settle()
        stream.fail(failure)
        await connection.ended()
        assert stream.causes == ["done"]
        await assert_nothing_is_left()
        return connection

    with caplog.at_level(logging.CRITICAL):
        connection = run(go())
    first, event, *rest = connection.pieces
    assert first == b"data: 1\n\n"
    assert event.startswith(b"data: {")
    assert event.endswith(b"}\n\n")
    error = msgspec.json.decode(event[6:])["error"]
    assert (error["code"], set(error)) == (code, {"message", "type", "param", "code"})
    assert b"secret" not in connection.body
    assert set(rest) == {b":\n"}
    assert not connection.is_finished


def test_a_client_that_leaves_ends_the_stream(make: Any) -> None:
    async def go() -> None:
        stream = make.stream(b"data: 1\n\n")
        connection = open_stream(make, stream)
        await connection.settle()
        connection.disconnect()
        await connection.ended()
        assert stream.causes == ["client_gone"]
        assert connection.body == b"data: 1\n\n"
        await assert_nothing_is_left()

    run(go())


def test_a_client_that_leaves_inside_a_send_ends_the_stream(make: Any) -> None:
    async def go() -> None:
        stream = make.stream(b"data: 1\n\n")
        connection = open_stream(make, stream)
        connection.hold_sends()
        await connection.settle()
        connection.disconnect()
        await connection.ended()
        assert stream.causes == ["client_gone"]
        await assert_nothing_is_left()

    run(go())


def test_a_stream_that_comes_after_the_client_left_is_closed_unread(make: Any) -> None:
    async def go() -> None:
        stream = make.stream(b"data: 1\n\n", DONE, ends=True)
        service = make.service()

        async def answer(call: Any) -> Any:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return stream

        service.answer = answer
        connection = AsgiClient(make_public_app(service)).open("POST", CHAT, body=b"{}")
        await connection.settle()
        connection.disconnect()
        await connection.ended()
        assert stream.causes == ["client_gone"]
        assert connection.status is None
        await assert_nothing_is_left()

    run(go())


def test_a_server_that_cancels_a_stream_is_a_shutdown(make: Any) -> None:
    async def go() -> None:
        stream = make.stream()
        connection = open_stream(make, stream)
        await connection.settle()
        connection.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connection.ended()
        assert stream.causes == ["shutdown"]
        await assert_nothing_is_left()

    run(go())


def test_an_idle_stream_gets_a_heartbeat_of_one_line(make: Any) -> None:  # SSE-6
    async def go() -> None:
        clock = ManualClock()
        stream = make.stream(b"data: 1\n\n")
        settings = HttpSettings(heartbeat_s=0.01)
        connection = open_stream(make, stream, settings=settings, ports=AppPorts(clock=clock))
        await connection.settle()
        for _ in range(20):
            clock.instant += 1
            await asyncio.sleep(0.001)
        await connection.settle()
        assert connection.pieces[1:] == [PING] * (len(connection.pieces) - 1)
        assert len(connection.pieces) > 1
        stream.put(b"data: 2\n\n")
        stream.end()
        await connection.ended()
        assert connection.pieces[-2:] == [b"data: 2\n\n", b""]

    run(go())


def test_a_nudge_that_is_no_heartbeat_sends_nothing(make: Any) -> None:
    async def go() -> None:
        stream = make.stream(b"data: 1\n\n")
        connection = open_stream(make, stream)
        await connection.settle()
        stream.nudge()
        await connection.settle()
        assert connection.pieces == [b"data: 1\n\n"]
        connection.disconnect()
        await connection.ended()

    run(go())


def test_a_stream_whose_reader_is_stuck_is_closed(make: Any) -> None:  # SLOW-1
    async def go() -> None:
        clock = ManualClock()
        stream = make.stream(b"data: 1\n\n")
        settings = HttpSettings(slow_client_timeout_s=0.01)
        connection = open_stream(make, stream, settings=settings, ports=AppPorts(clock=clock))
        connection.hold_sends()
        await connection.settle()
        assert connection.num_pending_sends == 1
        while not connection.task.done():
            clock.instant += 1
            await asyncio.sleep(0.001)
        await connection.ended()
        assert stream.causes == ["slow_client"]
        assert not connection.is_finished
        await assert_nothing_is_left()

    run(go())
