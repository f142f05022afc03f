"""`HttpServer`: an HTTP server around an ASGI application and a bound socket, and how any of them is stopped."""

import asyncio
import logging
import socket
from collections.abc import Awaitable
from pathlib import Path
from typing import Protocol

from tidegate.http.connection_abort import abort_connections
from tidegate.http.listener import describe

_log = logging.getLogger(__name__)
_ABORT_WAIT_S = 2.0


class HttpServer(Protocol):
    """Serves on the running event loop. Takes over the socket: closing it is the server's business from then on."""

    @property
    def port(self) -> int:
        """The TCP port; 0 on a Unix socket."""
        ...

    @property
    def url(self) -> str: ...

    async def start(self) -> None:
        """Returns when connections are accepted."""
        ...

    async def stop(self) -> None:
        """Refuses new connections at once, lets running responses finish for the grace time, then cuts them off.

        Idempotent. Afterwards no connection and no socket is left; tasks of requests that were cut off see the
        disconnect and end at once, perhaps only after this has returned.
        """
        ...

    async def wait_stopped(self) -> None:
        """Waits until the server has ended, by `stop` or by a failure of its own, which it raises."""
        ...


class Address:
    """Where a bound socket listens, kept while the socket itself passes into other hands."""

    def __init__(self, sock: socket.socket, *, is_tls: bool = False) -> None:
        self.is_unix = sock.family == socket.AF_UNIX
        self.url = describe(sock, is_tls=is_tls)
        self.port = 0 if self.is_unix else int(sock.getsockname()[1])
        self._path = Path(sock.getsockname()) if self.is_unix else None

    def remove_file(self) -> None:
        """Removes a Unix socket's file."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


async def wait_started(running: "asyncio.Task[None]", started: asyncio.Event) -> None:
    """Waits until a server's task says that it has started. Raises what the task raised before that."""
    waiting = asyncio.ensure_future(started.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if running.done():
        running.result()


async def wait_or_abort(running: "asyncio.Task[None]", address: Address, grace_s: float) -> None:
    """Waits for a server's task to end; cuts off the connections that outlast the grace time."""
    await asyncio.wait({running}, timeout=grace_s)
    if running.done():
        return
    num_aborted = 0 if address.is_unix else abort_connections(local_port=address.port)
    _log.warning("stopped waiting for responses on %s; connections cut off: %d", address.url, num_aborted)
    await asyncio.wait({running}, timeout=_ABORT_WAIT_S)
    if not running.done():
        running.cancel()
        await asyncio.wait({running}, timeout=_ABORT_WAIT_S)


async def ignore_cancelled(ended: Awaitable[None]) -> None:
    """Awaits a task that may have been cancelled by its owner."""
    try:
        await ended
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
