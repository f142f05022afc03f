"""uvicorn with httptools: the HTTP server where granian cannot run."""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Iterator

import uvicorn
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tidegate.http.asgi import AsgiApp
from tidegate.http.server import Address, ignore_cancelled, wait_or_abort, wait_started
from tidegate.http.settings import ServerSettings
from tidegate.http.tls import CertificateWatch, load_pair, make_context

_MAX_HEAD_BYTES = 128 * 1024
_LINGER_S = 2.0
_MAX_FRAMING_BYTES = 128 * 1024
_FRAMING_PER_BODY_BYTE = 16
"""One byte in a chunk of its own is framed by five."""


class _BoundedProtocol(HttpToolsProtocol):
    """Adds what uvicorn lacks: a head has to arrive within a time and a size, and so has a body that was
    refused; what frames a body is bounded; trailers are dropped.
    """

    header_timeout_s = 10.0
    _num_head_bytes = 0
    _num_requests = 0
    _running: RequestResponseCycle | None = None
    _num_framing_bytes = 0
    """Chunk sizes, their extensions, and trailers of the present request, less what its body allows."""
    _head_timer: asyncio.TimerHandle | None = None
    _linger_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self._end_linger()
        self.pipeline.clear()
        running = self._running
        if running is not None and running is not self.cycle and not running.response_complete:
            running.disconnected = True  # uvicorn tells only the newest request of a connection
            running.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        number = self._num_requests
        super().data_received(data)
        if self._head_timer is not None:
            self._num_head_bytes += len(data)
            if self._num_head_bytes > _MAX_HEAD_BYTES:
                self._refuse(b"431 Request Header Fields Too Large")
        elif self._num_requests == number:
            self._num_framing_bytes += len(data)
            if self._num_framing_bytes > _MAX_FRAMING_BYTES:
                self._refuse(b"400 Bad Request")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_timer is not None:  # else it is a trailer, which nobody asks for
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._num_framing_bytes -= len(body) * (1 + _FRAMING_PER_BODY_BYTE)
        super().on_body(body)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begin_head()

    def on_headers_complete(self) -> None:
        self._end_head()
        self._num_framing_bytes = 0
        self._num_requests += 1
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._end_linger()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self.cycle.more_body:
            self._linger_timer = self.loop.call_later(_LINGER_S, self.transport.close)
        super().on_response_complete()

    def _end_linger(self) -> None:
        if self._linger_timer is not None:
            self._linger_timer.cancel()
            self._linger_timer = None

    def _begin_head(self) -> None:
        self._end_head()
        self._num_head_bytes = 0
        self._head_timer = self.loop.call_later(self.header_timeout_s, self._refuse, b"408 Request Timeout")

    def _end_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: bytes) -> None:
        self._end_head()
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            self.transport.close()


class _QuietServer(uvicorn.Server):
    """uvicorn without signal handlers: signals belong to whoever runs the process."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class UvicornServer:
    """An `HttpServer`."""

    def __init__(self, app: AsgiApp, sock: socket.socket, settings: ServerSettings | None = None) -> None:
        self._settings = settings or ServerSettings()
        self._tls = self._settings.tls
        self._address = Address(sock, is_tls=self._tls is not None)
        self._sock = sock
        self._context = make_context(self._tls) if self._tls is not None else None
        protocol = type("_Protocol", (_BoundedProtocol,), {"header_timeout_s": self._settings.header_timeout_s})
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=logging.CRITICAL,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=self._settings.backlog,
            timeout_keep_alive=max(1, round(self._settings.header_timeout_s)),
            ssl_context_factory=self._give_context if self._context is not None else None,
        )
        self._server = _QuietServer(config)
        self._running: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    def _give_context(self, _config: uvicorn.Config, _make: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        assert self._context is not None
        return self._context

    async def _renew(self) -> None:
        """New handshakes use what the files say now; connections that stand are not touched."""
        assert self._context is not None
        assert self._tls is not None
        load_pair(self._context, self._tls)

    @property
    def port(self) -> int:
        return self._address.port

    @property
    def url(self) -> str:
        return self._address.url

    async def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._server.serve(sockets=[self._sock]))
        await wait_started(self._running, self._server.listening)
        if self._tls is not None:
            watch = CertificateWatch(self._tls, self._renew, self._settings.tls_poll_s)
            self._watching = asyncio.get_running_loop().create_task(watch.run())

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._running is None:
            self._sock.close()
        else:
            self._server.should_exit = True
            await wait_or_abort(self._running, self._address, self._settings.stop_grace_s)
        self._address.remove_file()

    async def wait_stopped(self) -> None:
        if self._running is not None:
            await ignore_cancelled(asyncio.shield(self._running))
