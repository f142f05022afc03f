"""A small server that speaks a remote engine's protocol, in front of a simulated engine: tokens are computed, not told.

What it says and takes is written after the engines' own sources; it is no engine, and proves nothing about one.
Everything runs on the loop that started it. Faults are given by tests, one for each coming generation.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidegate.errors import ServeError
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest
from tidegate.testing.engine_pair import EnginePair, simulated_core
from tidegate.testing.manual_clock import ManualClock


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one generation. `after` events `send` goes out as it is, then the connection `ends`.

    `status` with `body` answers in place of a stream. `is_silent`: nothing more, and the connection stays.
    """

    after: int = 0
    send: bytes = b""
    ends: bool = True
    is_silent: bool = False
    status: int | None = None
    body: bytes = b""


class Speech(Protocol):
    """One engine's protocol."""

    async def answer(self, wires: "Exchange", path: str, body: Any) -> None:
        """Answers one request; `body` is its JSON, None without one."""
        ...


class Generation:
    """The output of one simulated request. Ends with a delta that has `finish`, or an empty list of them at a loss."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[TokenDelta | None] = asyncio.Queue()

    def deliver(self, delta: TokenDelta) -> None:
        self.queue.put_nowait(delta)

    def fail(self, error: ServeError) -> None:
        self.queue.put_nowait(None)

    async def deltas(self) -> AsyncIterator[TokenDelta]:
        while (delta := await self.queue.get()) is not None:
            yield delta
            if delta.finish is not None:
                return


@dataclass
class StandIn:
    """`start`, in the end `aclose`. `requests` are the bodies of all generations, in order,
    `heads` their headers, names in lower case."""

    speech: Speech
    make_core: Callable[[], Any] = simulated_core
    api_key: str | None = None
    faults: list[Fault] = field(default_factory=list)
    requests: list[Any] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    num_connections: int = 0

    def __post_init__(self) -> None:
        self.pair = EnginePair(self.make_core, ManualClock())
        self.port = 0
        self._server: asyncio.Server | None = None
        self._exchanges: set[Exchange] = set()
        self._stepper: asyncio.Task[None] | None = None
        self._handlers: set[asyncio.Task[None]] = set()

    @property
    def names(self) -> list[str]:
        """The ids of all generations, but for trials, which have none."""
        ids = (body.get("request_id") or body.get("rid") for body in self.requests)
        return [one for one in ids if one is not None]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> "StandIn":
        """Listens, on the same port as before."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self._stepper = asyncio.create_task(self._step(), name="steps of the stand-in")
        return self

    async def die(self) -> None:
        """Vanishes: connections are reset, and nobody listens any more."""
        server, self._server = self._server, None
        if server is not None:
            await _close(server)
        for exchange in list(self._exchanges):
            exchange.writer.transport.abort()
        if self._stepper is not None:
            self._stepper.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        self.pair.lose()
        self.pair.start()
        self.pair.connect()

    async def aclose(self) -> None:
        await self.die()
        await asyncio.gather(*([self._stepper] if self._stepper else []), return_exceptions=True)

    async def _step(self) -> None:
        while True:
            await asyncio.sleep(0 if self.pair.step() else 0.0005)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Called with each connection at once: an end that comes before its handler's first step finds it.

        Some are accepted a turn after the end.
        """
        if self._server is None:
            writer.transport.abort()
            return
        self.num_connections += 1
        exchange = Exchange(self, reader, writer)
        self._exchanges.add(exchange)
        task = asyncio.create_task(self._serve(exchange), name="connection of the stand-in")
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)

    async def _serve(self, exchange: "Exchange") -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while await exchange.serve_one():
                    pass
        finally:
            self._exchanges.discard(exchange)
            exchange.writer.transport.abort()


async def _close(server: asyncio.Server) -> None:
    """Closes a server; one that was accepted in the same turn of the loop would be left open (CPython 3.11)."""
    for socket in server.sockets:
        asyncio.get_running_loop().remove_reader(socket.fileno())
    for _ in range(2):
        await asyncio.sleep(0)
    server.close()


class Exchange:
    """One connection; one request at a time."""

    def __init__(self, owner: StandIn, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.owner = owner
        self.writer = writer
        self._reader = reader
        self._fault: Fault | None = None
        self._open: str | None = None
        self._headers: dict[str, str] = {}

    async def serve_one(self) -> bool:
        """Reads and answers one request; False when the connection is over."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        _method, path, _ = lines[0].split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        self._headers = headers
        raw = await self._reader.readexactly(int(headers.get("content-length", 0)))
        key = self.owner.api_key
        if key is not None and headers.get("authorization") != f"Bearer {key}":
            await self.send(401, {"error": "Unauthorized"})
            return True
        await self.owner.speech.answer(self, path, json.loads(raw) if raw else None)
        return not self.writer.transport.is_closing()

    def generate(self, body: Any, request: InferenceRequest) -> Generation:
        """Starts a simulated request; the next fault is its."""
        self.owner.requests.append(body)
        self.owner.heads.append(self._headers)
        generation = Generation()
        self.owner.pair.engine.submit(request, generation)
        self._open = request.request_id
        return generation

    def take_fault(self) -> Fault | None:
        self._fault = self.owner.faults.pop(0) if self.owner.faults else None
        return self._fault

    def abort(self, request_id: str) -> None:
        self.owner.aborted.append(request_id)
        self.owner.pair.engine.abort(request_id)

    async def send(self, status: int, body: object) -> None:
        """Answers with JSON, or with bytes as they are."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"HTTP/1.1 {status} Some Words\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
        self.writer.write(head.encode() + raw)
        await self.writer.drain()

    async def stream(self, events: AsyncIterator[bytes]) -> None:
        """Answers with an event stream, unless the client goes: then the request is aborted."""
        self.writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        gone = asyncio.ensure_future(self._reader.read(1))
        sending = asyncio.ensure_future(self._send_events(events))
        try:
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not sending.done():
                sending.cancel()
                if self._open is not None:
                    self.abort(self._open)
            gone.cancel()
            await asyncio.gather(gone, sending, return_exceptions=True)

    async def _send_events(self, events: AsyncIterator[bytes]) -> None:
        fault, num_sent = self._fault, 0
        async for event in events:
            if fault is not None and num_sent == fault.after:
                await self._spoil(fault)
                return
            num_sent += 1
            await self._chunk(b"data: " + event + b"\n\n")
        if fault is not None:
            await self._spoil(fault)
            return
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def _spoil(self, fault: Fault) -> None:
        if fault.send:
            await self._chunk(fault.send)
        if fault.is_silent:
            await asyncio.Event().wait()
        if fault.ends:
            self.writer.close()
        else:
            self.writer.write(b"0\r\n\r\n")

    async def _chunk(self, data: bytes) -> None:
        self.writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self.writer.drain()
