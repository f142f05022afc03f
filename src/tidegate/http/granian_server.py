"""granian, embedded: the HTTP server by default. Its network side runs on a thread of its own, without the GIL."""

import asyncio
import socket

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from tidegate.http.asgi import AsgiApp
from tidegate.http.server import Address, ignore_cancelled, wait_or_abort, wait_started
from tidegate.http.settings import ServerSettings


class _Embedded(Server):  # type: ignore[misc] # granian ships types, but not for this module
    """granian's embedded server on a socket that is bound already."""

    def __init__(self, app: AsgiApp, sock: socket.socket, settings: ServerSettings) -> None:
        self._listening = sock
        self._is_unix = sock.family == socket.AF_UNIX
        self.started = asyncio.Event()
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=settings.backlog,
            backpressure=settings.max_requests,
            http1_settings=HTTP1Settings(header_read_timeout=round(settings.header_timeout_s * 1000)),
            log_enabled=False,
        )

    def _init_shared_socket(self) -> None:
        descriptor = self._listening.detach()  # the holder closes it at the end
        self._ssp = None
        self._shd = SocketHolder(descriptor, self._is_unix, self.backlog)  # type: ignore[call-arg] # stub is behind
        self._sfd = descriptor

    def startup(self, *args: object) -> None:
        super().startup(*args)
        self.started.set()


class GranianServer:
    """An `HttpServer`. An idle connection is closed after the header time too."""

    def __init__(self, app: AsgiApp, sock: socket.socket, settings: ServerSettings | None = None) -> None:
        self._settings = settings or ServerSettings()
        self._address = Address(sock)
        self._sock = sock
        self._server = _Embedded(app, sock, self._settings)
        self._running: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        return self._address.port

    @property
    def url(self) -> str:
        return self._address.url

    async def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._server.serve())
        await wait_started(self._running, self._server.started)

    async def stop(self) -> None:
        if self._running is None:
            self._sock.close()
        else:
            self._server.stop()
            await wait_or_abort(self._running, self._address, self._settings.stop_grace_s)
        self._address.remove_file()

    async def wait_stopped(self) -> None:
        if self._running is not None:
            await ignore_cancelled(asyncio.shield(self._running))
