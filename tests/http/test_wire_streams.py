"""Streams over real sockets, on both HTTP servers: frames, disconnects, slow readers, broken ends."""

import asyncio
import select
from collections.abc import Coroutine
from typing import Any

import pytest
import uvloop

from tidegate.errors import EngineLost
from tidegate.http.app import make_public_app
from tidegate.http.settings import HttpSettings

REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
DONE = b"data: [DONE]\n\n"

pytestmark = pytest.mark.parametrize("kind", ["granian", "uvicorn"])


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(20):
            return await coroutine

    return uvloop.run(bounded())


def unchunk(response: bytes) -> tuple[bytes, bool]:
    """The body of a chunked response, and whether its last chunk came."""
    rest = response.partition(b"\r\n\r\n")[2]
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        if int(size, 16) == 0:
            return body, True
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return body, False


def serve_stream(make: Any, kind: str, stream: Any, **settings: Any) -> Any:
    service = make.service()
    service.reply = stream
    return make.serve(kind, make_public_app(service, settings=HttpSettings(**settings)))


def test_frames_come_as_they_are_made_and_the_connection_is_used_again(make: Any, kind: str) -> None:  # SSE-8
    async def go() -> None:
        service = make.service()
        async with make.serve(kind, make_public_app(service)) as site:
            wire = await site.connect()
            for number in range(3):
                stream = service.reply = make.stream()
                wire.received = b""
                await wire.send(REQUEST)
                stream.put(b"data: %d\n\n" % number)
                await wire.read_until(b"data: %d\n\n" % number)
                assert DONE not in wire.received
                stream.put(DONE)
                stream.end()
                await wire.read_until(b"0\r\n\r\n")
                assert unchunk(wire.received) == (b"data: %d\n\n" % number + DONE, True)
                assert b"content-length" not in wire.received.lower()
                await make.eventually(lambda stream=stream: stream.causes == ["done"])

    run(go())


def test_an_idle_stream_gets_comment_lines_between_events(make: Any, kind: str) -> None:  # SSE-6
    async def go() -> bytes:
        stream = make.stream(b"data: 1\n\n")
        async with serve_stream(make, kind, stream, heartbeat_s=0.05) as site:
            wire = await site.connect()
            await wire.send(REQUEST)
            await wire.read_until(b": ping\n")
            stream.put(b"data: 2\n\n")
            await wire.read_until(b"data: 2\n\n")
            wire.received += await wire.read_some()
            stream.put(DONE)
            stream.end()
            received: bytes = await wire.read_until(DONE)
            return received

    body = run(go())
    assert b": ping\n\n" not in body
    assert b"data: 1\n\n" in body


def test_no_heartbeat_comes_before_the_status_is_known(make: Any, kind: str) -> None:  # SSE-6
    async def go() -> None:
        service = make.service()
        release = asyncio.Event()

        async def answer(call: Any) -> Any:
            await release.wait()
            return make.stream(DONE, ends=True)

        service.answer = answer
        app = make_public_app(service, settings=HttpSettings(heartbeat_s=0.01))
        async with make.serve(kind, app) as site:
            wire = await site.connect()
            await wire.send(REQUEST)
            await service.arrived.wait()
            await asyncio.sleep(0.05)
            release.set()
            await wire.read_until(b"0\r\n\r\n")
            assert unchunk(wire.received) == (DONE, True)

    run(go())


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_client_that_leaves_mid_stream_is_noticed(make: Any, kind: str, is_reset: bool) -> None:
    async def go() -> None:
        streams = [make.stream(b"data: 1\n\n") for _ in range(20)]
        remaining = list(streams)
        service = make.service()

        async def answer(call: Any) -> Any:
            return remaining.pop()

        service.answer = answer
        async with make.serve(kind, make_public_app(service)) as site:
            for _ in streams:
                wire = await site.connect()
                await wire.send(REQUEST)
                await wire.read_until(b"data: 1\n\n")
                if is_reset:
                    wire.reset()
                else:
                    wire.close()
            await make.eventually(lambda: all(stream.causes == ["client_gone"] for stream in streams))

    run(go())


@pytest.mark.parametrize("num_frames", [0, 50, 100, 300])
def test_a_broken_stream_delivers_everything_and_then_is_cut(make: Any, kind: str, num_frames: int) -> None:  # SSE-4
    async def read_late(site: Any, delay_s: float) -> bytes:
        wire = await site.connect(receive_buffer_bytes=4096)
        await wire.send(REQUEST)
        await asyncio.sleep(delay_s)  # the reader falls behind, and the server's queues fill
        answer: bytes = await wire.read_all()
        return answer

    async def go() -> list[bytes]:
        service = make.service()

        async def answer(call: Any) -> Any:
            frames = iter([b"data: " + b"x" * 992 + b"\n\n"] * num_frames)
            stream = make.stream()

            async def take() -> bytes:
                for frame in frames:
                    return frame
                raise EngineLost("The engine died.")

            stream.take = take
            return stream

        service.answer = answer
        async with make.serve(kind, make_public_app(service)) as site:
            return await asyncio.gather(*(read_late(site, 0.05 * (number % 3)) for number in range(20)))

    for response in run(go()):
        body, is_ended = unchunk(response)
        assert not is_ended
        assert len(body) >= num_frames * 1000
        assert body.rstrip(b":\n").rpartition(b"\n\n")[2].startswith(b'data: {"error":')
        assert body.count(b"data: {") == 1


def test_a_reader_that_is_slow_gets_every_byte(make: Any, kind: str) -> None:
    frames = [b"data: %06d %s\n\n" % (number, b"x" * 985) for number in range(1000)]

    async def go() -> bytes:
        stream = make.stream(*frames, DONE, ends=True)
        async with serve_stream(make, kind, stream) as site:
            wire = await site.connect(receive_buffer_bytes=4096)
            await wire.send(REQUEST)
            await asyncio.sleep(0.1)
            await wire.read_until(b"0\r\n\r\n")
            received: bytes = wire.received
            return received

    assert unchunk(run(go())) == (b"".join(frames) + DONE, True)


def test_a_reader_that_stops_is_cut_off_and_others_go_on(make: Any, kind: str) -> None:  # SLOW-1, SLOW-2
    async def go() -> None:
        stuck = make.stream(refill=b"data: " + b"x" * 4000 + b"\n\n")
        healthy = make.stream(b"data: 1\n\n")
        replies = [healthy, stuck]
        service = make.service()

        async def answer(call: Any) -> Any:
            return replies.pop()

        service.answer = answer
        app = make_public_app(service, settings=HttpSettings(slow_client_timeout_s=0.4))
        async with make.serve(kind, app) as site:
            frozen = await site.connect(receive_buffer_bytes=4096)
            await frozen.send(REQUEST)
            await make.eventually(lambda: len(service.calls) == 1)
            wire = await site.connect()
            await wire.send(REQUEST)
            await wire.read_until(b"data: 1\n\n")
            await make.eventually(lambda: stuck.causes == ["slow_client"])
            assert healthy.causes == []
            healthy.put(DONE)
            healthy.end()
            await wire.read_until(b"0\r\n\r\n")
            # The client has still read nothing: the server must have let go all the same.
            poll = select.poll()
            poll.register(frozen.sock, 0)
            await make.eventually(lambda: poll.poll(0))
            assert len(await frozen.read_all()) < 1_000_000

    run(go())


def test_a_hundred_streams_at_once_each_get_their_own(make: Any, kind: str) -> None:
    async def read_one(site: Any, number: int) -> bytes:
        wire = await site.connect()
        await wire.send(REQUEST.replace(b"Host: x", b"Host: x\r\nX-Request-Id: r%d" % number))
        await wire.read_until(b"0\r\n\r\n")
        return unchunk(wire.received)[0]

    async def go() -> list[bytes]:
        service = make.service()

        async def answer(call: Any) -> Any:
            return make.stream(*(b"data: %s\n\n" % call.wire_id.encode(),) * 20, DONE, ends=True)

        service.answer = answer
        async with make.serve(kind, make_public_app(service)) as site:
            return await asyncio.gather(*(read_one(site, number) for number in range(100)))

    assert run(go()) == [b"data: r%d\n\n" % number * 20 + DONE for number in range(100)]


def test_old_clients_get_a_stream_that_ends_with_the_connection(make: Any, kind: str) -> None:
    async def go() -> bytes:
        async with serve_stream(make, kind, make.stream(b"data: 1\n\n", DONE, ends=True)) as site:
            answer: bytes = await site.talk(REQUEST.replace(b"HTTP/1.1", b"HTTP/1.0"))
            return answer

    assert run(go()).endswith(b"data: 1\n\n" + DONE) or kind == "uvicorn"  # which sends chunks to HTTP/1.0 too
