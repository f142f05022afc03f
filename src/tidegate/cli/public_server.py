"""PublicServer: the service for callers and its public listener."""

import asyncio
import contextlib
import socket
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from tidegate.cli.drain_order import DrainOrder
from tidegate.cli.model_engines import ModelSite
from tidegate.cli.public_edge import tls_files
from tidegate.cli.public_service import PublicService
from tidegate.cli.settings import Settings
from tidegate.cli.wiring import build_server
from tidegate.http.server import HttpServer

_READY_POLL_S = 0.01


class PublicServer(PublicService):
    """`start`, in the end `drain` and `stop`. Belongs to one event loop. Takes over the bound socket."""

    def __init__(
        self,
        settings: Settings,
        sites: tuple[ModelSite, ...],
        sock: socket.socket,
        logger: FilteringBoundLogger,
        order: DrainOrder | None = None,
        gate_socket: Path | None = None,
    ) -> None:
        """`gate_socket` is where another process decides who enters; None: this one does."""
        super().__init__(settings, sites, logger, order, gate_socket)
        self.http: HttpServer = build_server(settings, self.parts.public_app, sock, tls=tls_files(settings))

    async def start(self, *, patience_s: float = 0.0) -> None:
        """Accepts connections; requests are refused until the engine is ready.

        With `patience_s` nothing is accepted for so long at most, while requests would be refused: where several
        processes share a port, one that is not ready leaves connections to those that are.
        """
        self.open()
        await self._wait_ready(patience_s)
        await self.http.start()

    async def _wait_ready(self, patience_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while True:
                    if self.is_ready:
                        return
                    await asyncio.sleep(_READY_POLL_S)

    async def stop(self) -> None:
        """Closes the listener and its connections, then the service. Idempotent."""
        await self.http.stop()
        await self.close()
