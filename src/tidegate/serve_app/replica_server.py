"""ReplicaServer: everything of `tidegate serve` but the public listener, inside one replica of Ray Serve."""

import asyncio
import socket
from collections.abc import Sequence

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_fleet import EngineFleet
from tidegate.cli.engine_specs import model_specs
from tidegate.cli.fleet_acts import FleetActs
from tidegate.cli.fleet_members import FleetMembers
from tidegate.cli.fleet_scaler import FleetScaler
from tidegate.cli.followers import NoFollowers
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.operator import ServerOperator
from tidegate.cli.public_service import PublicService
from tidegate.cli.settings import Settings
from tidegate.cli.wiring import build_admin_app, build_server
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.http.asgi import AsgiApp
from tidegate.http.listener import bind_tcp
from tidegate.http.server import HttpServer
from tidegate.system import SystemClock


class ReplicaFailed(Exception):
    """The replica cannot serve what its settings say; the message says why."""


class ReplicaServer:
    """`start`, in the end `stop`. Belongs to one event loop."""

    def __init__(self, settings: Settings, loaded: Sequence[LoadedModel], logger: FilteringBoundLogger) -> None:
        """Raises ListenError when the admin listener has no port."""
        self._logger = logger
        self.fleet = EngineFleet(model_specs(settings), loaded, logger, SystemClock().now)
        self.service = PublicService(settings, self.fleet.sites, logger)
        followers = NoFollowers()
        self._members = FleetMembers(self.fleet, followers, logger)
        self._acts = FleetActs(self.fleet, self._members, followers, logger)
        parts = self.service.parts
        self._scaler = FleetScaler(self.fleet, self._members, parts.accounts_of, logger, SystemClock().now)
        admin_app = build_admin_app(
            parts.admin,
            ServerOperator(self.service, self._acts),
            settings,
            logger=logger,
            observer=parts.observer,
            authorise=parts.access.admin,
        )
        self._admin_socket: socket.socket = bind_tcp(settings.server.admin_host, settings.server.admin_port)
        self.admin: HttpServer = build_server(settings, admin_app, self._admin_socket)
        self._is_stopped = False

    @property
    def app(self) -> AsgiApp:
        """The application of the public routes."""
        return self.service.parts.public_app

    @property
    def is_ready(self) -> bool:
        return self.service.is_ready

    async def start(self) -> None:
        """Returns when requests are taken. Raises ReplicaFailed, and leaves nothing running then."""
        try:
            await self.fleet.start()
            self.service.open()
            await self.admin.start()
            await self.fleet.wait_ready()
            if (fault := self.fleet.fault) is not None:
                raise ReplicaFailed(fault)
            self._scaler.start()
        except EngineStartFailed as error:
            await self.stop()
            raise ReplicaFailed(str(error)) from error
        except BaseException:
            await self.stop()
            raise
        self._logger.info("replica ready", admin=self.admin.url)

    async def stop(self) -> None:
        """Lets what still runs finish, as a drain does, and ends everything. Idempotent."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self.service.parts.service.live:
            await self.service.drain()
        await self.service.close()
        await self.admin.stop()
        await self._scaler.aclose()
        await self._acts.stop_roll()
        await self._members.aclose()
        await self.fleet.aclose()
        await self._acts.aclose()


def own_loop_reports(logger: FilteringBoundLogger) -> None:
    """Sends what the replica's event loop would print into the log."""

    def report(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        fault = context.get("exception")
        logger.error("event loop", message=str(context.get("message", "")), fault=repr(fault))

    asyncio.get_running_loop().set_exception_handler(report)
