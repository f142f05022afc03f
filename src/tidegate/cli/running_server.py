"""RunningServer: engines, listeners and services of one process, started, drained and stopped as one."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from structlog.typing import FilteringBoundLogger

from tidegate.cli.drain_order import DrainOrder
from tidegate.cli.engine_fleet import EngineFleet
from tidegate.cli.engine_keeper import EngineKeeper
from tidegate.cli.engine_specs import model_specs
from tidegate.cli.fleet_acts import FleetActs
from tidegate.cli.fleet_members import FleetMembers
from tidegate.cli.fleet_scaler import FleetScaler
from tidegate.cli.followers import NoFollowers
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.operator import ServerOperator
from tidegate.cli.public_server import PublicServer
from tidegate.cli.settings import Settings
from tidegate.cli.sockets import Sockets
from tidegate.cli.wiring import ServerParts, build_admin_app, build_server
from tidegate.http.server import HttpServer
from tidegate.system import SystemClock


class RunningServer:
    """`start`, then `wait_ready`, in the end `drain` and `stop`. Belongs to one event loop."""

    def __init__(
        self,
        settings: Settings,
        loaded: Sequence[LoadedModel],
        sockets: Sockets,
        logger: FilteringBoundLogger,
        order: DrainOrder | None = None,
    ) -> None:
        self.fleet = EngineFleet(model_specs(settings), loaded, logger, SystemClock().now)
        self._server = PublicServer(settings, self.fleet.sites, sockets.public, logger, order)
        self.parts: ServerParts = self._server.parts
        self.public: HttpServer = self._server.http
        followers = NoFollowers()
        self._members = FleetMembers(self.fleet, followers, logger)
        self._acts = FleetActs(self.fleet, self._members, followers, logger)
        operator = ServerOperator(self._server, self._acts)
        parts = self.parts
        self._scaler = FleetScaler(self.fleet, self._members, parts.accounts_of, logger, SystemClock().now)
        admin_app = build_admin_app(
            parts.admin, operator, settings, logger=logger, observer=parts.observer, authorise=parts.access.admin
        )
        self.admin: HttpServer = build_server(settings, admin_app, sockets.admin)

    @property
    def supervisor(self) -> EngineKeeper:
        """The keeper of the first engine."""
        return self.fleet.first

    @property
    def order(self) -> DrainOrder:
        """Given by an operator as well as by signals."""
        return self._server.order

    @property
    def public_url(self) -> str:
        return self.public.url

    async def start(self) -> None:
        """Starts the engines and accepts connections; requests are refused until one is ready."""
        await self.fleet.start()
        await self._server.start()
        await self.admin.start()
        self._scaler.start()

    async def wait_ready(self) -> None:
        """Waits for the engines. Raises EngineStartFailed for a model that has none."""
        await self.fleet.wait_ready()

    async def wait_stopped(self) -> None:
        """Waits until a listener has ended by itself."""
        await wait_first(self.public.wait_stopped(), self.admin.wait_stopped())

    async def drain(self) -> None:
        """See `PublicServer.drain`."""
        await self._server.drain()

    async def stop(self) -> None:
        """Closes listeners and connections, then ends the engines. Idempotent."""
        await self._server.stop()
        await self.admin.stop()
        await self._scaler.aclose()
        await self._acts.stop_roll()
        await self._members.aclose()
        await self.fleet.aclose()
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
