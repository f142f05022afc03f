"""RunningServer: engine, listeners and service of one process, started, drained and stopped as one."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from structlog.typing import FilteringBoundLogger

from tidegate.cli.drain_order import DrainOrder
from tidegate.cli.engine_keeper import EngineKeeper, make_acts, make_keeper
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.operator import ServerOperator
from tidegate.cli.public_server import PublicServer
from tidegate.cli.settings import Settings
from tidegate.cli.sockets import Sockets
from tidegate.cli.wiring import ServerParts, build_admin_app, build_server
from tidegate.http.server import HttpServer


class RunningServer:
    """`start`, then `wait_ready`, in the end `drain` and `stop`. Belongs to one event loop."""

    def __init__(
        self,
        settings: Settings,
        loaded: LoadedModel,
        sockets: Sockets,
        logger: FilteringBoundLogger,
        order: DrainOrder | None = None,
    ) -> None:
        self.supervisor: EngineKeeper = make_keeper(settings, loaded, logger)
        self._server = PublicServer(settings, loaded, self.supervisor.engine, sockets.public, logger, order)
        self.parts: ServerParts = self._server.parts
        self.public: HttpServer = self._server.http
        self._acts = make_acts(self.supervisor)
        operator = ServerOperator(self._server, self._acts)
        parts = self.parts
        admin_app = build_admin_app(
            parts.admin, operator, settings, logger=logger, observer=parts.observer, authorise=parts.access.admin
        )
        self.admin: HttpServer = build_server(settings, admin_app, sockets.admin)

    @property
    def order(self) -> DrainOrder:
        """Given by an operator as well as by signals."""
        return self._server.order

    @property
    def public_url(self) -> str:
        return self.public.url

    async def start(self) -> None:
        """Starts the engine process and accepts connections; requests are refused until the engine is ready."""
        await self.supervisor.start()
        await self._server.start()
        await self.admin.start()

    async def wait_ready(self) -> None:
        """Waits for the engine's first readiness. Raises EngineStartFailed and RemoteStartFailed."""
        await self.supervisor.wait_ready()

    async def wait_stopped(self) -> None:
        """Waits until a listener has ended by itself."""
        await wait_first(self.public.wait_stopped(), self.admin.wait_stopped())

    async def drain(self) -> None:
        """See `PublicServer.drain`."""
        await self._server.drain()

    async def stop(self) -> None:
        """Closes listeners and connections, then ends the engine. Idempotent."""
        await self._server.stop()
        await self.admin.stop()
        await self.supervisor.aclose()
        await self._acts.aclose()


async def wait_first(*waits: Coroutine[Any, Any, object]) -> None:
    """Waits until one of several coroutines has ended; cancels the others."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
