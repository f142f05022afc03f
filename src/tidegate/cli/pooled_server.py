"""PooledServer: engines, one port, several server processes; this process keeps them alive and speaks for them."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from tidegate import __version__
from tidegate.cli.access import open_admin_access
from tidegate.cli.drain_order import DrainOrder
from tidegate.cli.engine_fleet import EngineFleet
from tidegate.cli.engine_keeper import EngineKeeper
from tidegate.cli.engine_specs import model_specs
from tidegate.cli.fleet_acts import FleetActs
from tidegate.cli.fleet_members import FleetMembers
from tidegate.cli.fleet_scaler import FleetScaler
from tidegate.cli.followers import WorkerFollowers
from tidegate.cli.loop_lag import LoopLagProbe
from tidegate.cli.model_engines import engine_views, has_rows_of_engines
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.pooled_operator import PooledOperator, PooledView
from tidegate.cli.public_edge import tls_files
from tidegate.cli.remote_settings import is_remote
from tidegate.cli.running_server import wait_first
from tidegate.cli.settings import Settings
from tidegate.cli.shared_gate import SharedGate
from tidegate.cli.sockets import Sockets
from tidegate.cli.wiring import build_admin_app, build_server
from tidegate.cli.worker_pool import WorkerPool
from tidegate.http.listener import describe
from tidegate.http.server import HttpServer
from tidegate.observability.metrics import MetricsObserver
from tidegate.system import SystemClock


class PooledServer:
    """The counterpart of `RunningServer` for more than one worker."""

    def __init__(
        self,
        settings: Settings,
        loaded: Sequence[LoadedModel],
        sockets: Sockets,
        logger: FilteringBoundLogger,
        order: DrainOrder | None = None,
    ) -> None:
        self.order = order or DrainOrder(settings.server)
        self._socket = sockets.public
        self._socket.set_inheritable(True)
        self.public_url = describe(self._socket, is_tls=tls_files(settings) is not None)
        self._settings = settings
        self._logger = logger
        self._folder = Path(tempfile.mkdtemp(prefix="tidegate-workers-"))
        self.fleet = EngineFleet(model_specs(settings), loaded, logger, SystemClock().now, is_watching=True)
        views = engine_views(self.fleet.sites)
        self._pool: WorkerPool | None = None
        self._gate = SharedGate(self.fleet.sites, logger)
        accounts = self._gate.statistics
        metrics = MetricsObserver(views.status, accounts, __version__)
        metrics.engines = views.rows if has_rows_of_engines(self.fleet.sites) else None
        metrics.quotas = self._gate.quotas
        self._lag = LoopLagProbe(metrics.loop_lag)
        self._followers = WorkerFollowers()
        self._members = FleetMembers(self.fleet, self._followers, logger)
        self._scaler = FleetScaler(self.fleet, self._members, self._gate.statistics_of, logger, SystemClock().now)
        self._acts = FleetActs(self.fleet, self._members, self._followers, logger)
        self._view = PooledView(views, metrics, self.order, accounts)
        self._view.adds_gauges = all(is_remote(site.settings) for site in self.fleet.sites)
        operator = PooledOperator(self._view, self._acts, self.order)
        admin_app = build_admin_app(
            self._view, operator, settings, logger=logger, observer=metrics, authorise=open_admin_access(settings)
        )
        self.admin: HttpServer = build_server(settings, admin_app, sockets.admin)

    @property
    def supervisor(self) -> EngineKeeper:
        """The keeper of the first engine."""
        return self.fleet.first

    @property
    def pool(self) -> WorkerPool:
        if self._pool is None:
            raise RuntimeError("the server has not been started")
        return self._pool

    async def start(self) -> None:
        """Starts engine and workers, and the admin listener."""
        self._lag.start()
        await self.fleet.start()
        self._pool = WorkerPool(self._settings, self._folder, self.fleet.ties, self._socket.fileno(), self._logger)
        await self._gate.start(self._pool.gate_socket)
        self._pool.start()
        self._view.pool = self._followers.pool = self._pool
        await self.admin.start()
        self._scaler.start()

    async def wait_ready(self) -> None:
        """Waits for the engines and for every worker. Raises EngineStartFailed for a model that
        has no engine.
        """
        await self.fleet.wait_ready()
        await self.pool.wait_ready()

    async def wait_stopped(self) -> None:
        """Waits until the admin listener has ended by itself."""
        await wait_first(self.admin.wait_stopped())

    async def drain(self) -> None:
        """Lets the workers drain and end."""
        self.order.give()
        await self.pool.drain(self.order)

    async def stop(self) -> None:
        """Ends workers, listeners and the engine. Idempotent."""
        self._lag.stop()
        if self._pool is not None:
            await self._pool.aclose()
        await self._gate.aclose()
        self._socket.close()
        await self.admin.stop()
        await self._scaler.aclose()
        await self._acts.stop_roll()
        await self._members.aclose()
        await self.fleet.aclose()
        await self._acts.aclose()
        for file in self._folder.glob("*.sock"):
            file.unlink(missing_ok=True)
        if self._folder.exists():
            os.rmdir(self._folder)
