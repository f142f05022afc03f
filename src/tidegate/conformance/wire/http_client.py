"""One HTTP/1.1 exchange over a socket: sends as the ask's manner says, keeps every byte that comes and when it came.

A connection for each exchange: what one case does to a connection is no matter of another's. Never raises for what a
server does; the exchange's ending says it.
"""

import asyncio
import socket
import ssl
import struct
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from tidegate.conformance.ask import Ask, Leaving, Manner
from tidegate.conformance.wire.exchange import Ending, Exchange, Piece
from tidegate.conformance.wire.fill import WireRequest
from tidegate.conformance.wire.http_response import ResponseReader
from tidegate.conformance.wire.sse_reader import SseReader

READ_BYTES = 64 * 1024
MAX_RESPONSE_BYTES = 16 * 1024 * 1024
MAX_RESPONSE_PARTS = 100_000
"""Chunks and events: each costs a reader much more than its bytes do."""
CLOSE_S = 0.5
"""How long a connection may take to close before it is dropped."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one exchange. `timeout_s`: from connecting to the end. `is_firm`: also where the ask's manner has its own."""

    timeout_s: float
    max_response_bytes: int = MAX_RESPONSE_BYTES
    max_parts: int = MAX_RESPONSE_PARTS
    is_firm: bool = False

    def limit_s(self, manner: Manner) -> float:
        """Returns how long the exchange may take."""
        own = manner.timeout_s
        return self.timeout_s if own is None else min(own, self.timeout_s) if self.is_firm else own


@dataclass(slots=True)
class _Reading:
    """What has come so far."""

    response: ResponseReader
    start: float
    bounds: Bounds
    is_connected: bool = False
    ended: float | None = None
    pieces: list[Piece] = field(default_factory=list)
    num_bytes: int = 0
    num_events: int = 0
    sse: SseReader = field(default_factory=SseReader)
    num_body_pieces: int = 0

    @property
    def num_parts(self) -> int:
        """Chunks or events, whichever are more."""
        return max(self.num_events, self.num_body_pieces)

    @property
    def is_too_much(self) -> bool:
        """Whether more has come than is read."""
        return self.num_bytes > self.bounds.max_response_bytes or self.num_parts > self.bounds.max_parts

    def take(self, data: bytes) -> None:
        self.pieces.append(Piece(time.monotonic() - self.start, data))
        self.num_bytes += len(data)
        self.response.feed(data)
        for piece in self.response.body[self.num_body_pieces :]:
            self.num_events += len(self.sse.feed(piece.data))
        self.num_body_pieces = len(self.response.body)


async def exchange(
    ask: Ask, request: WireRequest, bounds: Bounds, origin: float, others: asyncio.Event | None = None
) -> Exchange:
    """Returns what came of the request. `origin`: instant from which `sent_at_s` counts. `others`: set when the other
    asks are answered, for a client that waits for them only.
    """
    reading = _Reading(ResponseReader(ask.method), time.monotonic(), bounds)
    limit_s = bounds.limit_s(ask.manner)
    detail = ""
    try:
        async with asyncio.timeout(limit_s):
            ending = await _talk(ask.manner, request, reading, others)
    except TimeoutError:
        ending, detail = Ending.TIMED_OUT, f"after {limit_s:g} s"
    except (OSError, ValueError) as error:  # ValueError: a host name that is none
        ending, detail = (Ending.RESET if reading.is_connected else Ending.NO_CONNECTION), str(error)
    if reading.response.fault is not None:
        ending, detail = Ending.NOT_HTTP, reading.response.fault
    elif ending is Ending.ENDLESS:
        detail = f"after {reading.num_bytes} bytes in {reading.num_parts} parts"
    elif ending is Ending.CUT:
        detail = reading.response.cut or detail
    data = request.redaction.of_pieces([piece.data for piece in reading.pieces])
    return Exchange(
        ask=ask.name,
        copy=request.copy,
        method=ask.method,
        url=request.redaction.of_text(request.url),
        request=request.shown(),
        marker=request.marker,
        pieces=tuple(Piece(piece.at_s, part) for piece, part in zip(reading.pieces, data, strict=True)),
        ending=ending,
        detail=request.redaction.of_text(detail),
        duration_s=(reading.ended or time.monotonic()) - reading.start,
        sent_at_s=reading.start - origin,
        request_json=request.json,
    )


async def _talk(manner: Manner, request: WireRequest, reading: _Reading, others: asyncio.Event | None = None) -> Ending:
    reader, writer = await _connect(request.url, manner)
    reading.is_connected = True
    try:
        sending = asyncio.create_task(_send(writer, request, manner))
        try:
            if manner.leaving in (Leaving.AFTER_REQUEST, Leaving.HALF_REQUEST):
                await sending
                return Ending.LEFT
            if manner.leaving in (Leaving.AFTER_PAUSE, Leaving.AFTER_OTHERS):
                await sending
                is_told = others is not None and manner.leaving is Leaving.AFTER_OTHERS
                return await _read_for(reader, manner, reading, others if is_told else None)
            return await _read(reader, manner, reading)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
    finally:
        reading.ended = time.monotonic()
        if manner.with_reset:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        await _close(writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    """Closes in order; drops the connection where the other side takes too long."""
    writer.close()
    try:
        async with asyncio.timeout(CLOSE_S):
            await writer.wait_closed()
    except (TimeoutError, OSError):
        writer.transport.abort()
    except asyncio.CancelledError:
        writer.transport.abort()
        raise


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


async def _connect(url: str, manner: Manner) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    is_tls = parts.scheme == "https"
    context = _tls() if is_tls else None
    port = parts.port or (443 if is_tls else 80)
    host = parts.hostname or ""
    limit = min(READ_BYTES, manner.receive_buffer_bytes or READ_BYTES)
    if manner.receive_buffer_bytes is None:
        return await asyncio.open_connection(host, port, ssl=context, limit=limit)
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, manner.receive_buffer_bytes)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, (host, port))
    except BaseException:
        sock.close()
        raise
    return await asyncio.open_connection(sock=sock, ssl=context, server_hostname=host if context else None, limit=limit)


async def _send(writer: asyncio.StreamWriter, request: WireRequest, manner: Manner) -> None:
    body = request.body
    if manner.leaving is Leaving.HALF_REQUEST:
        body = body[: len(body) // 2]
    data = request.head + body
    step = manner.send_bytes or len(data) or 1
    for start in range(0, len(data), step):
        writer.write(data[start : start + step])
        await writer.drain()
        if manner.send_pause_s:
            await asyncio.sleep(manner.send_pause_s)


async def _read_for(
    reader: asyncio.StreamReader, manner: Manner, reading: _Reading, others: asyncio.Event | None
) -> Ending:
    """Reads for `leave_after_s`, at most until `others` is set."""
    answer = asyncio.create_task(_read(reader, manner, reading))
    waiting: set[asyncio.Task[Any]] = {answer} if others is None else {answer, asyncio.create_task(others.wait())}
    try:
        await asyncio.wait(waiting, timeout=manner.leave_after_s, return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else Ending.LEFT
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _read(reader: asyncio.StreamReader, manner: Manner, reading: _Reading) -> Ending:
    has_paused = False
    while True:
        data = await reader.read(manner.read_bytes or READ_BYTES)
        if not data:
            reading.response.finish()
            return Ending.WHOLE if reading.response.is_whole else Ending.CUT
        reading.take(data)
        if reading.response.is_whole or reading.response.fault is not None:
            return Ending.WHOLE
        if reading.is_too_much:
            return Ending.ENDLESS
        if _leaves(manner, reading):
            return Ending.LEFT
        if manner.pause_after_events is not None and not has_paused and reading.num_events >= manner.pause_after_events:
            has_paused = True
            await asyncio.sleep(manner.pause_s)
        if manner.read_pause_s:
            await asyncio.sleep(manner.read_pause_s)


def _leaves(manner: Manner, reading: _Reading) -> bool:
    if manner.leaving is Leaving.AFTER_HEAD:
        return reading.response.status is not None
    return manner.leaving is Leaving.AFTER_EVENTS and reading.num_events >= manner.events
