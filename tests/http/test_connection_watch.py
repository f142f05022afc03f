"""Clients that leave behind bytes which nobody reads: seen by asking the kernel, on both HTTP servers."""

import asyncio
import os
import select
import socket
import struct
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from tidegate.http.app import make_public_app
from tidegate.http.connection_abort import abort_connections, find_sockets
from tidegate.http.connection_watch import ConnectionWatch, WatchedRequest
from tidegate.testing.manual_clock import ManualClock

REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"

pytestmark = pytest.mark.skipif(not hasattr(select, "POLLRDHUP"), reason="the kernel does not tell")


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(30):
            return await coroutine

    return uvloop.run(bounded())


def make_client(address: tuple[str, int]) -> socket.socket:
    """A port that was bound, and not only taken by connecting, is nobody else's: it may be bound once more."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    client.bind(address)
    return client


class Line:
    """One TCP connection, watched from its server's side."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.client = make_client(("127.0.0.1", 0))
            self.client.connect(listener.getsockname())
            self.server, peer = listener.accept()
            self.ends = (*peer, listener.getsockname()[1])
        self.num_gone = 0
        self.request = WatchedRequest(self.ends, self._leave)

    def _leave(self) -> None:
        self.num_gone += 1

    def close(self) -> None:
        self.client.close()
        self.server.close()


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.close()


def looks(watch: ConnectionWatch, num_looks: int = 2) -> None:
    for _ in range(num_looks):
        watch.look()


def test_a_client_that_stays_is_left_alone(line: Line) -> None:
    async def go() -> None:
        watch = ConnectionWatch(ManualClock())
        watch.add(line.request)
        line.client.sendall(b"unread")
        looks(watch, 5)
        assert line.num_gone == 0
        watch.discard(line.request)

    run(go())


def test_the_same_client_port_towards_another_port_of_ours_is_another_connection(line: Line) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, make_client(line.client.getsockname()) as other:
        other.connect(listener.getsockname())
        innocent, peer = listener.accept()
        with innocent:
            assert peer == line.client.getsockname()
            found, _ = find_sockets({line.ends})
            assert [descriptor for descriptor, _ in found.values()] == [line.server.fileno()]
            assert abort_connections({line.ends}) == 1
            other.sendall(b"alive")
            assert innocent.recv(5) == b"alive"
            assert line.client.recv(1) == b""


def test_a_client_that_left_behind_unread_bytes_is_found_once_and_reset(line: Line) -> None:
    async def go() -> None:
        watch = ConnectionWatch(ManualClock())
        watch.add(line.request)
        line.client.sendall(b"unread")
        line.client.close()
        watch.look()
        assert line.num_gone == 0, "a request younger than a tick is not looked at"
        looks(watch, 3)
        assert line.num_gone == 1
        with pytest.raises(OSError):  # noqa: PT011 # which one is the kernel's choice
            for _ in range(3):
                line.server.send(b"x")
        watch.discard(line.request)

    run(go())


def test_a_descriptor_that_is_used_again_is_another_connection(line: Line) -> None:
    """Nor is a connection of another listener of this process, reset at that moment."""
    reset = Line()
    reset.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    reset.client.close()

    async def go() -> None:
        watch = ConnectionWatch(ManualClock())
        watch.add(line.request)
        looks(watch)
        other = Line()
        other.client.close()
        os.dup2(other.server.fileno(), line.server.fileno())
        looks(watch, 3)
        assert line.num_gone == 0
        watch.discard(line.request)
        other.close()

    run(go())
    reset.close()


def test_a_request_whose_connection_was_reset_before_anybody_knew_it_is_found(line: Line) -> None:
    async def go() -> None:
        watch = ConnectionWatch(ManualClock())
        watch.add(line.request)
        line.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.client.close()
        looks(watch, 3)
        assert line.num_gone == 1

    run(go())


@pytest.mark.parametrize("kind", ["granian", "uvicorn"])
@pytest.mark.parametrize("rest", [b"\r\n", REQUEST, REQUEST * 1000], ids=["line break", "request", "thousand"])
def test_a_whole_reply_is_given_up_when_its_client_left_behind_unread_bytes(
    make: Any, kind: str, rest: bytes
) -> None:  # DL-2 SLOW-6
    async def go() -> int:
        service = make.service()
        service.hang()
        async with make.serve(kind, make_public_app(service)) as site:
            wire = await site.connect()
            await wire.send(REQUEST + rest)
            await service.arrived.wait()
            wire.close()
            await make.eventually(lambda: service.num_cancelled == 1)
        return len(service.calls)

    assert run(go()) == 1
