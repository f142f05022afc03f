"""Requests that come slowly, or not at all, on both HTTP servers: the others are served, and each slow one ends."""

import asyncio
import re
import resource
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from tidegate.http.app import make_public_app
from tidegate.http.settings import HttpSettings

POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
SLOW_HEAD = POST + b"X-a: "
SLOW_BODIES = (POST + b"Content-Length: 100\r\n\r\n{", POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
NUM_SLOW = 500
NUM_NORMAL = 20

pytestmark = pytest.mark.parametrize("kind", ["granian", "uvicorn"])


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(60):
            return await coroutine

    return uvloop.run(bounded())


@pytest.fixture(autouse=True)
def _room_for_both_ends() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, min(hard, 4 * NUM_SLOW)) if hard != resource.RLIM_INFINITY else max(soft, 4 * NUM_SLOW)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_five_hundred_slow_connections_leave_service_normal_and_end(make: Any, kind: str) -> None:  # SLOW-3
    async def go() -> None:
        service = make.service()
        app = make_public_app(service, settings=HttpSettings(body_timeout_s=1.0, linger_s=0.1))
        async with make.serve(kind, app, header_timeout_s=1.0) as site:
            wires = [await site.connect() for _ in range(NUM_SLOW)]
            for number, wire in enumerate(wires):
                await wire.send(SLOW_HEAD if number % 2 else SLOW_BODIES[number // 2 % 2])
            for _ in range(NUM_NORMAL):
                assert (await site.talk(HEALTH)).startswith(b"HTTP/1.1 200")
                answer = await site.talk(POST + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")
                assert answer.startswith(b"HTTP/1.1 200")
            answers = await asyncio.gather(*(wire.read_all() for wire in wires))
            assert len(service.calls) == NUM_NORMAL
        for number, answer in enumerate(answers):
            if number % 2:
                assert answer == b"" or answer.startswith(b"HTTP/1.1 408")
            else:
                assert answer.startswith(b"HTTP/1.1 408")
                assert b'"code":"slow_request"' in answer
                assert b"connection: close" in answer.lower()

    run(go())


def test_a_trickle_does_not_reset_the_clock(make: Any, kind: str) -> None:  # SLOW-3
    async def trickle(wire: Any) -> None:
        while True:
            await wire.send(b"x")
            await asyncio.sleep(0.02)

    async def go() -> bytes:
        app = make_public_app(make.service(), settings=HttpSettings(body_timeout_s=0.4, linger_s=0.1))
        async with make.serve(kind, app, header_timeout_s=0.4) as site:
            answers = []
            for start in (SLOW_HEAD, POST + b"Content-Length: 100000\r\n\r\n"):
                wire = await site.connect()
                await wire.send(start)
                task = asyncio.ensure_future(trickle(wire))
                answers.append(await wire.read_all())
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            return b"|".join(answers)

    head, _, body = run(go()).partition(b"|")
    assert head == b"" or head.startswith(b"HTTP/1.1 408")
    assert body.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_body_shorter_than_announced_leaves_no_task_and_no_500(
    make: Any, kind: str, is_reset: bool, caplog: pytest.LogCaptureFixture
) -> None:  # SLOW-5
    ended: list[Any] = []

    async def go() -> int:
        service = make.service()
        app = make_public_app(service, ports=make.ports(write_access=lambda reply, _work: ended.append(reply)))
        async with make.serve(kind, app) as site:
            for start in SLOW_BODIES * 10:
                wire = await site.connect()
                await wire.send(start)
                if is_reset:
                    wire.reset()
                else:
                    wire.close()
            await make.eventually(lambda: len(ended) >= 20 or is_reset)
        return len(service.calls)

    assert run(go()) == 0
    assert not caplog.records
    assert {reply.outcome for reply in ended} <= {"client_gone"}
    assert {reply.status for reply in ended} <= {None, 400}, "400 is for those who sent what is not HTTP and listen"


def test_limits_are_told_before_anything_of_the_body_is_read(make: Any, kind: str) -> None:  # SLOW-4
    async def go() -> list[bytes]:
        app = make_public_app(make.service(), settings=HttpSettings(body_bytes=1000, linger_s=0.1))
        async with make.serve(kind, app, header_timeout_s=0.5) as site:
            return [
                await site.talk(POST + b"Content-Length: 1001\r\n\r\n"),
                await site.talk(POST + b"Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001 + b"\r\n"),
                await site.talk(b"POST /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"),
                await site.talk(POST + b"A: " + b"b" * 66_000 + b"\r\nContent-Length: 5\r\n\r\n"),
            ]

    answers = run(go())
    assert [int(re.findall(rb"HTTP/1.1 (\d+)", answer)[0]) for answer in answers] == [413, 413, 414, 431]
    for answer, name in zip(answers, ("body_bytes", "body_bytes", "uri_bytes", "header_bytes"), strict=True):
        assert f'"limit":{{"name":"{name}"'.encode() in answer
