"""RunningServer: engine, listeners and service of one process, started, drained and stopped as one."""

import asyncio
import contextlib
import socket

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_log import relay_to
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.settings import Settings
from tidegate.cli.wiring import ServerParts, build_parts, build_server, engine_options
from tidegate.engines.local.supervisor import Supervisor
from tidegate.errors import ServerDraining
from tidegate.http.listener import ListenError, bind_tcp
from tidegate.http.server import HttpServer
from tidegate.lifecycle.drain import DrainEvent

_LAST_WORDS_S = 2.0
"""How long streams have to take their error event after the drain."""


class Sockets:
    """The two bound listeners. Raises ListenError when one cannot be had; then nothing is left bound."""

    def __init__(self, settings: Settings) -> None:
        server = settings.server
        if not is_loopback(server.admin_host):
            raise ListenError(
                f"the admin listener has no credential yet and must stay on loopback, not on {server.admin_host}; "
                "reach it through a tunnel"
            )
        self.public = bind_tcp(
            server.host,
            server.port,
            send_buffer_bytes=server.send_buffer_bytes,
            write_timeout_s=server.slow_client_timeout_s,
        )
        try:
            self.admin: socket.socket = bind_tcp(server.admin_host, server.admin_port)
        except ListenError:
            self.public.close()
            raise


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    return host in ("localhost", "::1") or host.startswith("127.")


class RunningServer:
    """`start`, then `supervisor.wait_ready`, in the end `drain` and `stop`. Belongs to one event loop."""

    def __init__(self, settings: Settings, loaded: LoadedModel, sockets: Sockets, logger: FilteringBoundLogger) -> None:
        self._settings = settings
        self.supervisor = Supervisor(engine_options(settings, loaded), write_log=relay_to(logger))
        self.parts: ServerParts = build_parts(settings, loaded, self.supervisor.engine, logger)
        self.public: HttpServer = build_server(settings, self.parts.public_app, sockets.public)
        self.admin: HttpServer = build_server(settings, self.parts.admin_app, sockets.admin)

    async def start(self) -> None:
        """Starts the engine process and accepts connections; requests are refused until the engine is ready."""
        await self.supervisor.start()
        await self.public.start()
        await self.admin.start()

    async def drain(self) -> None:
        """Refuses new requests, lets the running ones finish, and ends what is left with an error event."""
        parts = self.parts
        parts.drain.apply(DrainEvent.BEGIN)
        await self._wait_empty(self._settings.server.drain_timeout_s)
        parts.drain.apply(DrainEvent.END)
        if parts.service.live:
            parts.service.expire_all(ServerDraining("The server is shutting down."))
            await self._wait_empty(_LAST_WORDS_S)

    async def stop(self) -> None:
        """Closes listeners and connections, then ends the engine. Idempotent."""
        await self.public.stop()
        await self.admin.stop()
        await self.supervisor.aclose()
        self.parts.service.close()

    async def _wait_empty(self, timeout_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.parts.service.wait_empty()
