"""HTTP/1.1 over sockets, cheaply enough to stand beside the server that it loads: httptools parses, bytes are stamped
with the time at which they came, connections are used again. A shell; never raises for what a server does.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import cast

import httptools

from tidegate.clock import Clock

Feed = Callable[[bytes, float], None]
MAX_HEADER_BYTES = 256 * 1024


class Transfer(Enum):
    """How an exchange ended, as HTTP."""

    WHOLE = "whole"
    CUT = "cut"
    NO_CONNECTION = "no connection"
    NOT_HTTP = "not HTTP"
    TIMEOUT = "timeout"


@dataclass(slots=True)
class Response:
    """Of one exchange. `status` is None where no head came. `sent_at`: when the request was handed to the system."""

    sent_at: float
    status: int | None = None
    ended_at: float = 0.0
    transfer: Transfer = Transfer.NO_CONNECTION
    detail: str = ""
    num_bytes: int = 0


@dataclass(slots=True)
class _Exchange:
    response: Response
    feed: Feed
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class _Connection(asyncio.Protocol):
    """One connection, one exchange at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._parser = httptools.HttpResponseParser(self)
        self._exchange: _Exchange | None = None
        self._at = 0.0
        self._has_length = False
        self._num_head_bytes = 0
        self.transport: asyncio.Transport | None = None
        self.is_usable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's derive from nothing

    def send(self, data: bytes, feed: Feed) -> _Exchange:
        """Sends one request; `done` of what is returned becomes ready at its end."""
        assert self.transport is not None
        self._parser = httptools.HttpResponseParser(self)
        self._has_length = False
        self._num_head_bytes = 0
        exchange = self._exchange = _Exchange(Response(self._clock.now()), feed)
        self.transport.write(data)
        return exchange

    def close(self) -> None:
        self.is_usable = False
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._at = self._clock.now()
        exchange = self._exchange
        if exchange is None:
            self.close()  # bytes that nobody asked for: what follows cannot be told apart
            return
        exchange.response.num_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._end(Transfer.NOT_HTTP, f"{error or 'not HTTP'}: {data[:60]!r}")
        if exchange.response.status is None:
            self._num_head_bytes += len(data)
            if self._num_head_bytes > MAX_HEADER_BYTES:
                self._end(Transfer.NOT_HTTP, f"a head of more than {MAX_HEADER_BYTES} bytes")

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_usable = False
        exchange = self._exchange
        if exchange is None:
            return
        self._at = self._clock.now()
        if exchange.response.num_bytes == 0:
            self._end(Transfer.NO_CONNECTION, str(exc or "closed before an answer"))
        elif exc is None and exchange.response.status is not None and not self._has_length:
            self._end(Transfer.WHOLE, "")  # a body without a length ends with its connection
        else:
            self._end(Transfer.CUT, str(exc or "closed inside the answer"))

    def on_header(self, name: bytes, value: bytes) -> None:
        lowered = name.lower()
        if lowered == b"content-length" or (lowered == b"transfer-encoding" and b"chunked" in value.lower()):
            self._has_length = True

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._exchange is not None and status >= 200:
            self._exchange.response.status = status

    def on_body(self, body: bytes) -> None:
        if self._exchange is not None:
            self._exchange.feed(body, self._at)

    def on_message_complete(self) -> None:
        if self._exchange is None or self._exchange.response.status is None:
            return  # an informational response: the true one follows
        self.is_usable = self.is_usable and self._parser.should_keep_alive()
        self._end(Transfer.WHOLE, "")

    def _end(self, transfer: Transfer, detail: str) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        exchange.response.transfer, exchange.response.detail = transfer, detail
        exchange.response.ended_at = self._at
        if transfer is not Transfer.WHOLE:
            self.close()
        if not exchange.done.done():
            exchange.done.set_result(None)


class HttpClient:
    """Connections to one origin. Used as a context manager, or closed with `close`."""

    def __init__(self, origin: tuple[str, str, int], clock: Clock, *, connect_timeout_s: float = 10.0) -> None:
        self._scheme, self._host, self._port = origin
        self._clock = clock
        self._connect_timeout_s = connect_timeout_s
        self._idle: list[_Connection] = []
        self._tls = ssl.create_default_context() if self._scheme == "https" else None

    async def exchange(self, data: bytes, feed: Feed, timeout_s: float) -> Response:
        """Sends a request and reads its answer into `feed`. A cancelled exchange drops its connection."""
        start = self._clock.now()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_usable:
                continue
            response = await self._talk(connection, data, feed, timeout_s)
            # A server may close an idle connection at any time; only one that was fresh says that it does not answer.
            if response.transfer is not Transfer.NO_CONNECTION:
                return response
        try:
            async with asyncio.timeout(min(timeout_s, self._connect_timeout_s)):
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(
                    lambda: _Connection(self._clock), self._host, self._port, ssl=self._tls
                )
        except TimeoutError:
            detail = f"no connection within {min(timeout_s, self._connect_timeout_s):g} s"
            return Response(start, None, self._clock.now(), Transfer.NO_CONNECTION, detail)
        except (OSError, ValueError) as error:  # ValueError: a host name that is none
            return Response(start, None, self._clock.now(), Transfer.NO_CONNECTION, str(error))
        response = await self._talk(connection, data, feed, timeout_s)
        response.sent_at = start
        return response

    async def _talk(self, connection: _Connection, data: bytes, feed: Feed, timeout_s: float) -> Response:
        exchange = connection.send(data, feed)
        try:
            async with asyncio.timeout(timeout_s):
                await exchange.done
        except TimeoutError:
            connection.close()
            exchange.response.transfer, exchange.response.detail = Transfer.TIMEOUT, f"after {timeout_s:g} s"
            exchange.response.ended_at = self._clock.now()
        except BaseException:
            connection.close()
            raise
        if connection.is_usable:
            self._idle.append(connection)
        return exchange.response

    async def __aenter__(self) -> "HttpClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Drops all connections that nobody uses. An event loop that ended before they are gone would wait for them."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        await asyncio.sleep(0)
