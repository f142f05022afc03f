"""PublicServer: the service and its public listener, around an engine that somebody else keeps alive."""

import asyncio
import contextlib
import socket

from structlog.typing import FilteringBoundLogger

from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.public_edge import tls_files
from tidegate.cli.settings import Settings
from tidegate.cli.wiring import ServerParts, build_parts, build_server
from tidegate.engines.local.client import LocalEngine
from tidegate.errors import ServerDraining
from tidegate.http.server import HttpServer
from tidegate.lifecycle.drain import DrainEvent

_LAST_WORDS_S = 2.0
"""How long streams have to take their error event after the drain."""


class PublicServer:
    """`start`, in the end `drain` and `stop`. Belongs to one event loop. Takes over the bound socket."""

    def __init__(
        self,
        settings: Settings,
        loaded: LoadedModel,
        engine: LocalEngine,
        sock: socket.socket,
        logger: FilteringBoundLogger,
    ) -> None:
        self._drain_timeout_s = settings.server.drain_timeout_s
        self.parts: ServerParts = build_parts(settings, loaded, engine, logger)
        self.http: HttpServer = build_server(settings, self.parts.public_app, sock, tls=tls_files(settings))

    async def start(self) -> None:
        """Accepts connections; requests are refused until the engine is ready."""
        await self.http.start()

    async def drain(self) -> None:
        """Refuses new requests, lets the running ones finish, and ends what is left with an error event."""
        parts = self.parts
        parts.drain.apply(DrainEvent.BEGIN)
        await self._wait_empty(self._drain_timeout_s)
        parts.drain.apply(DrainEvent.END)
        if parts.service.live:
            parts.service.expire_all(ServerDraining("The server is shutting down."))
            await self._wait_empty(_LAST_WORDS_S)

    async def stop(self) -> None:
        """Closes the listener and its connections. Idempotent."""
        await self.http.stop()
        self.parts.service.close()

    async def _wait_empty(self, timeout_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.parts.service.wait_empty()
