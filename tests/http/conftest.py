"""A service and an admin view that do as the test says, and servers on real sockets."""

import asyncio
import contextlib
import gc
import os
import socket
import stat
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from tidegate.contract.admin import AddBody, EngineAct, RollBody
from tidegate.contract.admin_query import RequestFilter
from tidegate.contract.health import DegradedEngine
from tidegate.errors import ModelNotFound, RouteNotFound, ServeError
from tidegate.http.app import AppPorts
from tidegate.http.granian_server import GranianServer
from tidegate.http.listener import bind_tcp
from tidegate.http.settings import ServerSettings
from tidegate.http.uvicorn_server import UvicornServer
from tidegate.lifecycle.principal import Principal
from tidegate.serving.call import Call
from tidegate.serving.gate import KeySlot
from tidegate.serving.local_gate import FreeSlot
from tidegate.serving.reply import Headers, Reply, WholeReply

JSON = [("content-type", "application/json")]


class ScriptedStream:
    """A `StreamReply` that the test fills. `refill` gives bytes for ever instead."""

    def __init__(self, *frames: bytes, ends: bool = False, refill: bytes = b"") -> None:
        self.headers: Headers = [("Tidegate-Served-Revision", "rev-1")]
        self.causes: list[str] = []
        self.num_nudges = 0
        self._frames = list(frames)
        self._refill = refill
        self._is_ended = ends
        self._failure: Exception | None = None
        self._is_nudged = False
        self._changed = asyncio.Event()

    def put(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._changed.set()

    def end(self) -> None:
        self._is_ended = True
        self._changed.set()

    def fail(self, error: Exception) -> None:
        self._failure = error
        self._changed.set()

    async def take(self) -> bytes | None:
        while not self._frames and not self._refill:
            if self._failure is not None:
                raise self._failure
            if self._is_ended:
                return None
            if self._is_nudged:
                self._is_nudged = False
                return b""
            self._changed.clear()
            await self._changed.wait()
        if self._refill:
            await asyncio.sleep(0)
            return self._refill
        frames, self._frames = self._frames, []
        return b"".join(frames)

    def nudge(self) -> None:
        self.num_nudges += 1
        self._is_nudged = True
        self._changed.set()

    def close(self, cause: str) -> None:
        self.causes.append(cause)


class FakeService:
    """Answers every call with `reply`, or with what `answer` does. Keeps the calls, and counts what was cancelled."""

    def __init__(self) -> None:
        self.reply: Reply = WholeReply(b'{"ok":true}')
        self.answer: Callable[[Call], Coroutine[Any, Any, Reply]] | None = None
        self.calls: list[Call] = []
        self.num_cancelled = 0
        self.is_well = True
        self.arrived = asyncio.Event()

    async def chat(self, call: Call) -> Reply:
        self.calls.append(call)
        self.arrived.set()
        try:
            return await self.answer(call) if self.answer is not None else self.reply
        except asyncio.CancelledError:
            self.num_cancelled += 1
            raise

    completion = embeddings = score = rerank = classify = tokenize = detokenize = chat

    async def claim_slot(self, principal: Principal, route: str) -> KeySlot:
        return FreeSlot()

    def models(self, principal: Principal) -> WholeReply:
        return WholeReply(b'{"object":"list","data":[]}')

    def model(self, model_id: str, principal: Principal) -> WholeReply:
        if model_id == "missing":
            raise ModelNotFound("No model has this name.")
        return WholeReply(model_id.encode(), headers=[("Tidegate-Served-Revision", "rev-1")])

    def contract(self, principal: Principal) -> WholeReply:
        return WholeReply(b'{"object":"contract"}')

    def is_ready(self) -> bool:
        return self.is_well

    def raise_(self, error: BaseException) -> None:
        async def answer(call: Call) -> Reply:
            raise error

        self.answer = answer

    def hang(self) -> None:
        async def answer(call: Call) -> Reply:
            await asyncio.Event().wait()
            raise AssertionError

        self.answer = answer


class FakeAdmin:
    def __init__(self) -> None:
        self.why_not: ServeError | None = None
        self.liveness = True
        self.unwell: list[DegradedEngine] = []
        self.wanted: list[RequestFilter] = []

    async def live_requests(self, wanted: RequestFilter) -> bytes:
        self.wanted.append(wanted)
        return b'{"requests":[]}'

    async def engine(self) -> bytes:
        return b'{"engine":1}'

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        return ("application/openmetrics-text" if "openmetrics" in accept else "text/plain; version=0.0.4"), b"up 1\n"

    async def obstacle(self) -> ServeError | None:
        return self.why_not

    async def degraded(self) -> list[DegradedEngine]:
        return self.unwell

    def is_alive(self) -> bool:
        return self.liveness


class FakeOperator:
    """Keeps what it is told to do. Ids other than "known" are unknown."""

    def __init__(self) -> None:
        self.acts: list[tuple[str, object]] = []

    async def drain(self, timeout_s: float | None) -> WholeReply:
        return self._note("drain", timeout_s)

    async def abort(self, request_id: str) -> WholeReply:
        if request_id != "known":
            raise RouteNotFound("No live request has this id.")
        return self._note("abort", request_id)

    async def flush_cache(self) -> WholeReply:
        return self._note("flush", None)

    async def restart_engine(self, wait_s: float) -> WholeReply:
        return self._note("restart", wait_s)

    async def act_on_engine(self, name: str, act: EngineAct, wait_s: float) -> WholeReply:
        if name != "known":
            raise RouteNotFound("No engine has this name.")
        return self._note(act.value, wait_s)

    async def add_engine(self, body: AddBody) -> WholeReply:
        return self._note("add", body)

    async def roll_engines(self, body: RollBody) -> WholeReply:
        return self._note("roll", body)

    async def stop_roll(self) -> WholeReply:
        return self._note("stop_roll", None)

    def roll_told(self) -> WholeReply:
        return WholeReply(b'{"state":"none"}')

    def _note(self, act: str, argument: object) -> WholeReply:
        self.acts.append((act, argument))
        return WholeReply(b'{"status":"as told"}', 202)


class Wire:
    """A raw TCP client."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.received = b""

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def read_some(self) -> bytes:
        data = await asyncio.get_running_loop().sock_recv(self.sock, 65536)
        self.received += data
        return data

    async def read_until(self, mark: bytes) -> bytes:
        """Reads until `mark` has come, and returns all of it so far; fails at the end of the file."""
        while mark not in self.received:
            assert await self.read_some(), f"the connection ended before {mark!r}: {self.received[-300:]!r}"
        return self.received

    async def read_all(self) -> bytes:
        """Reads to the end; a reset is an end too."""
        with contextlib.suppress(ConnectionError):
            while await self.read_some():
                pass
        return self.received

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        self.sock.close()


class Site:
    """A running server, and connections to it."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.wires: list[Wire] = []

    async def connect(self, receive_buffer_bytes: int | None = None) -> Wire:
        sock = socket.socket()
        if receive_buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        sock.setblocking(False)
        wire = Wire(sock)
        self.wires.append(wire)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.server.port))
        return wire

    async def talk(self, data: bytes) -> bytes:
        """Sends bytes and reads to the end of the connection."""
        wire = await self.connect()
        with contextlib.suppress(ConnectionError):
            await wire.send(data)
        return await wire.read_all()


async def eventually(is_true: Callable[[], object]) -> None:
    """Waits for a condition, not for ever."""
    async with asyncio.timeout(10):
        while not is_true():
            await asyncio.sleep(0.002)


def count_files() -> int:
    """Open descriptors, but for devices: an event loop keeps one open on `/dev/null` in reserve.

    granian's runtime closes its own when the last object that knows it has gone.
    """
    gc.collect()
    num_files = 0
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):
            num_files += not stat.S_ISCHR(os.fstat(int(name)).st_mode)
    return num_files


SERVERS: dict[str, Any] = {"granian": GranianServer, "uvicorn": UvicornServer}


@contextlib.asynccontextmanager
async def serve_app(kind: str, app: Any, **options: Any) -> AsyncIterator[Site]:
    """Runs a server for a block, and checks that nothing of it is left afterwards."""
    num_files = count_files()
    settings = ServerSettings(**{"header_timeout_s": 5.0, "stop_grace_s": 2.0, **options})
    server = SERVERS[kind](app, bind_tcp("127.0.0.1", 0, send_buffer_bytes=16384), settings)
    await server.start()
    site = Site(server)
    try:
        yield site
    finally:
        for wire in site.wires:
            wire.close()
        await server.stop()
    await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    await eventually(lambda: count_files() <= num_files)


@pytest.fixture(scope="session", autouse=True)
def _warm_up() -> None:
    # The first start in a process opens a few descriptors that stay for its life.
    async def once() -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            raise AssertionError

        for kind in SERVERS.values():
            server = kind(app, bind_tcp("127.0.0.1", 0))
            await server.start()
            await server.stop()

    uvloop.run(once())


@pytest.fixture
def make() -> Any:
    """Names of this file for tests: they cannot import it."""

    class Make:
        stream = ScriptedStream
        service = FakeService
        admin = FakeAdmin
        operator = FakeOperator
        serve = staticmethod(serve_app)
        eventually = staticmethod(eventually)
        whole = WholeReply
        error = ServeError
        ports = AppPorts

    return Make
