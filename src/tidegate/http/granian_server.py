"""granian, embedded: the HTTP server by default. Its network side runs on a thread of its own, without the GIL.

granian reads a certificate once. So a changed one gets a new acceptor on the same socket; the old one stops accepting
and lives until its last response has ended. No connection is refused meanwhile.
"""

import asyncio
import os
import socket
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Callable
from typing import Any

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.common import SSLProtocols
from granian.server.embed import Server

from tidegate.http.asgi import AsgiApp
from tidegate.http.server import Address, ignore_cancelled, wait_or_abort, wait_started
from tidegate.http.settings import ServerSettings
from tidegate.http.tls import CertificateWatch, TlsError, TlsFiles

_PROOF_S = 30.0


class _Embedded(Server):  # type: ignore[misc] # granian ships types, but not for this module
    """granian's embedded server on a socket that is bound already."""

    def __init__(self, app: AsgiApp, sock: socket.socket, settings: ServerSettings) -> None:
        self._listening = sock
        self._is_unix = sock.family == socket.AF_UNIX
        self.started = asyncio.Event()
        self.retiring: set[asyncio.Future[None]] = set()
        """Acceptors that accept no more."""
        self._spare: int | None = None
        self._spawning: tuple[Any, Any] | None = None
        tls = settings.tls
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=settings.backlog,
            backpressure=settings.max_requests,
            http1_settings=HTTP1Settings(header_read_timeout=round(settings.header_timeout_s * 1000)),
            log_enabled=False,
            ssl_cert=tls.certificate if tls else None,
            ssl_key=tls.key if tls else None,
            ssl_protocol_min=SSLProtocols.tls12,
        )

    def _init_shared_socket(self) -> None:
        descriptor = self._listening.detach()
        if self.ssl_ctx[0]:
            self._spare = os.dup(descriptor)
        self._hold(descriptor)

    def _hold(self, descriptor: int) -> None:
        self._ssp = None
        self._shd = SocketHolder(descriptor, self._is_unix, self.backlog)  # type: ignore[call-arg] # stub is behind
        self._sfd = descriptor  # the holder closes it at the end

    def startup(self, spawn_target: Callable[..., Any], target_loader: Callable[..., Any]) -> None:
        self._spawning = (spawn_target, target_loader)
        super().startup(spawn_target, target_loader)
        self.started.set()

    def renew(self) -> None:
        """Accepts from now on with what the certificate's files say now."""
        if self._spare is None or self._spawning is None:
            return
        self._hold(os.dup(self._spare))
        target, loader = self._spawning
        worker = self._spawn_worker(idx=0, target=target, callback_loader=loader)
        worker.start()
        for old in self.wrks:
            old.terminate()
            ending = asyncio.ensure_future(old.join())
            self.retiring.add(ending)
            ending.add_done_callback(self.retiring.discard)
        self.wrks[:] = [worker]

    def stop(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        super().stop()


class GranianServer:
    """An `HttpServer`. An idle connection is closed after the header time too."""

    def __init__(self, app: AsgiApp, sock: socket.socket, settings: ServerSettings | None = None) -> None:
        self._settings = settings or ServerSettings()
        self._tls = self._settings.tls
        self._address = Address(sock, is_tls=self._tls is not None)
        self._sock = sock
        self._server = _Embedded(app, sock, self._settings)
        self._running: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        return self._address.port

    @property
    def url(self) -> str:
        return self._address.url

    async def start(self, *, is_proven: bool = False) -> None:
        """Raises TlsError for a certificate that granian cannot serve; `is_proven`: there is no need to try."""
        if self._tls is not None and not is_proven:
            await _prove(self._tls)
        self._running = asyncio.get_running_loop().create_task(self._run())
        await wait_started(self._running, self._server.started)
        if self._tls is not None:
            watch = CertificateWatch(self._tls, self._renew, self._settings.tls_poll_s)
            self._watching = asyncio.get_running_loop().create_task(watch.run())

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._running is None:
            self._sock.close()
        else:
            self._server.stop()
            await wait_or_abort(self._running, self._address, self._settings.stop_grace_s)
        self._address.remove_file()

    async def wait_stopped(self) -> None:
        if self._running is not None:
            await ignore_cancelled(asyncio.shield(self._running))

    async def _run(self) -> None:
        await self._server.serve()
        if self._server.retiring:
            await asyncio.wait(self._server.retiring)

    async def _renew(self) -> None:
        if self._tls is not None:
            await _prove(self._tls)
        self._server.renew()


async def _prove(files: TlsFiles) -> None:
    """Tries a pair in a process of its own. Raises TlsError."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "tidegate.http.tls_proof", str(files.certificate), str(files.key)),
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    try:
        async with asyncio.timeout(_PROOF_S):
            code = await process.wait()
    except TimeoutError:
        code = None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code != 0:
        raise TlsError(
            f"granian cannot serve {files.certificate} and {files.key}; it takes RSA, P-256, P-384 and Ed25519 keys; "
            'server.http = "uvicorn" takes others too'
        )
