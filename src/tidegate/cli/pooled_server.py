"""PooledServer: one engine, one port, several server processes; this process keeps them alive and speaks for them."""

import json
import os
import tempfile
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from tidegate import __version__
from tidegate.cli.engine_log import relay_to
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.public_edge import tls_files
from tidegate.cli.running_server import wait_first
from tidegate.cli.settings import Settings
from tidegate.cli.sockets import Sockets
from tidegate.cli.wiring import build_admin_app, build_server, engine_options
from tidegate.cli.worker_pool import WorkerPool
from tidegate.contract.codec import encode_json
from tidegate.engines.local.supervisor import Supervisor
from tidegate.http.listener import describe
from tidegate.http.server import HttpServer
from tidegate.observability.exposition import render_metrics
from tidegate.observability.merged_metrics import MergedMetrics
from tidegate.observability.metrics import MetricsObserver
from tidegate.serving.admin import describe_engine
from tidegate.serving.served_model import ServedModel


class PooledServer:
    """The counterpart of `RunningServer` for more than one worker."""

    def __init__(self, settings: Settings, loaded: LoadedModel, sockets: Sockets, logger: FilteringBoundLogger) -> None:
        self._socket = sockets.public
        self._socket.set_inheritable(True)
        self.public_url = describe(self._socket, is_tls=tls_files(settings) is not None)
        self._settings = settings
        self._logger = logger
        self._folder = Path(tempfile.mkdtemp(prefix="tidegate-workers-"))
        self.supervisor = Supervisor(engine_options(settings, loaded), write_log=relay_to(logger))
        self._pool: WorkerPool | None = None
        metrics = MetricsObserver(self.supervisor.engine.statistics, None, __version__)
        self._view = PooledAdmin(self, metrics, loaded.served)
        self.admin: HttpServer = build_server(settings, build_admin_app(self._view, settings, logger), sockets.admin)

    @property
    def pool(self) -> WorkerPool:
        if self._pool is None:
            raise RuntimeError("the server has not been started")
        return self._pool

    async def start(self) -> None:
        """Starts engine and workers, and the admin listener."""
        await self.supervisor.start()
        engine_socket = self.supervisor.socket_path
        if engine_socket is None:
            raise RuntimeError("the engine has no socket")
        self._pool = WorkerPool(self._settings, self._folder, engine_socket, self._socket.fileno(), self._logger)
        self._pool.start()
        await self.admin.start()

    async def wait_ready(self) -> None:
        """Waits for the engine and for one worker. Raises EngineStartFailed."""
        await self.supervisor.wait_ready()
        await self.pool.wait_ready()

    async def wait_stopped(self) -> None:
        """Waits until the admin listener has ended by itself."""
        await wait_first(self.admin.wait_stopped())

    async def drain(self) -> None:
        """Lets the workers drain and end."""
        self._view.is_draining = True
        await self.pool.drain()

    async def stop(self) -> None:
        """Ends workers, listeners and the engine. Idempotent."""
        if self._pool is not None:
            await self._pool.aclose()
        self._socket.close()
        await self.admin.stop()
        await self.supervisor.aclose()
        for file in self._folder.glob("worker-*.sock"):
            file.unlink(missing_ok=True)
        if self._folder.exists():
            os.rmdir(self._folder)


class PooledAdmin:
    """The operator's view over all workers. Implements the admin port of the HTTP layer."""

    def __init__(self, server: PooledServer, metrics: MetricsObserver, served: ServedModel) -> None:
        self._server = server
        self._metrics = metrics
        self._served = served
        self.is_draining = False

    async def live_requests(self) -> bytes:
        lists = [json.loads(answer)["data"] for answer in await self._server.pool.ask_all("requests")]
        requests = sorted((one for part in lists for one in part), key=lambda one: -float(one["age_s"]))
        return encode_json({"object": "list", "data": requests})

    async def engine(self) -> bytes:
        totals: dict[str, int] = {}
        for answer in await self._server.pool.ask_all("admission"):
            for name, value in json.loads(answer).items():
                if isinstance(value, int):
                    totals[name] = totals.get(name, 0) + value
        return encode_json(describe_engine(self._server.supervisor.engine.statistics(), self._served, totals))

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        texts = [answer.decode() for answer in await self._server.pool.ask_all("metrics")]
        body, content_type = render_metrics(MergedMetrics(self._metrics.registry, texts).registry, accept)
        return content_type, body

    async def is_ready(self) -> tuple[bool, str]:
        if self.is_draining:
            return False, "draining"
        if not self._server.supervisor.engine.is_ready:
            return False, "engine is not ready"
        if not await self._server.pool.count_ready():
            return False, "no worker is ready"
        return True, "ready"

    def is_alive(self) -> bool:
        return True
