"""HttpConnection: one HTTP/1.1 connection to an engine, one exchange at a time. httptools parses.

Bytes go to the exchange's receiver in the socket's callback: there is no task and no queue between an engine's write
and what is made of it. Reading can be paused, and then the kernel's buffers and the engine's own fill.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

import httptools

MAX_HEAD_BYTES = 64 * 1024


class Receiver(Protocol):
    """Where an answer goes. After `end` or `lose` nothing follows."""

    def take_head(self, status: int) -> None: ...

    def take_body(self, data: bytes) -> None: ...

    def end(self) -> None:
        """The answer is whole."""
        ...

    def lose(self, reason: str) -> None:
        """The connection ended before the answer did. The reason is for operators."""
        ...


class HttpConnection(asyncio.Protocol):
    """`on_free` gets this connection each time that it may carry another exchange, `on_closed` when it has ended."""

    def __init__(
        self, on_free: Callable[["HttpConnection"], None], on_closed: Callable[["HttpConnection"], None]
    ) -> None:
        self._on_free = on_free
        self._on_closed = on_closed
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._receiver: Receiver | None = None
        self._is_busy = False
        self._status = 0
        self._num_head_bytes = 0
        self._is_delimited = False
        self._is_closed = False

    @property
    def is_usable(self) -> bool:
        """Whether an exchange can begin on it."""
        return self._transport is not None and not self._is_busy and not self._transport.is_closing()

    def send(self, data: bytes, receiver: Receiver) -> None:
        """Sends one request."""
        if self._transport is None or self._is_busy:
            raise RuntimeError("this connection carries an exchange already")
        self._parser = httptools.HttpResponseParser(self)
        self._receiver = receiver
        self._is_busy = True
        self._status = self._num_head_bytes = 0
        self._is_delimited = False
        self._transport.write(data)

    def pause(self, *, paused: bool) -> None:
        """Stops or resumes reading."""
        if self._transport is None or self._transport.is_closing():
            return
        if paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def release(self) -> None:
        """The receiver has all it wants: what is left of the answer is read and dropped."""
        self._receiver = None

    def cut(self) -> None:
        """Closes at once; nobody hears of it but `on_closed`."""
        self._receiver = None
        if self._transport is not None:
            self._transport.abort()

    # ---- from the socket ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's derive from nothing

    def data_received(self, data: bytes) -> None:
        if not self._is_busy:
            self.cut()  # bytes that nobody asked for: what follows cannot be told apart
            return
        if self._status == 0:
            self._num_head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._break(f"what is not HTTP: {data[:60]!r}")
        if self._status == 0 and self._num_head_bytes > MAX_HEAD_BYTES:
            self._break(f"a head of more than {MAX_HEAD_BYTES} bytes")

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and self._status and not self._is_delimited:
            self._finish()  # a body without a length ends with its connection
        self._break(f"the connection broke: {exc}" if exc is not None else "the connection was closed")
        if not self._is_closed:
            self._is_closed = True
            self._on_closed(self)

    # ---- from the parser ----

    def on_message_begin(self) -> None:
        if not self._is_busy:
            self.cut()  # an answer that nobody asked for, right behind the one before

    def on_header(self, name: bytes, value: bytes) -> None:
        lowered = name.lower()
        if lowered == b"content-length" or (lowered == b"transfer-encoding" and b"chunked" in value.lower()):
            self._is_delimited = True

    def on_headers_complete(self) -> None:
        status = int(self._parser.get_status_code())
        if status < 200:
            return
        self._status = status
        if self._receiver is not None:
            self._receiver.take_head(status)

    def on_body(self, body: bytes) -> None:
        if self._receiver is not None:
            self._receiver.take_body(body)

    def on_message_complete(self) -> None:
        if self._status == 0:
            return  # an informational answer: the true one follows
        may_go_on = self._parser.should_keep_alive()
        self._finish()
        if may_go_on and self._transport is not None and not self._transport.is_closing():
            self._on_free(self)
        else:
            self.cut()

    def _finish(self) -> None:
        receiver, self._receiver = self._receiver, None
        self._is_busy = False
        if receiver is not None:
            receiver.end()

    def _break(self, reason: str) -> None:
        receiver = self._receiver
        self._is_busy = False
        self.cut()
        if receiver is not None:
            receiver.lose(reason)
