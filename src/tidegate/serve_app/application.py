"""The Ray Serve application: `import_path: tidegate.serve_app.application:build` (deploy/ray/serve.yaml).

One replica is one whole server: engines, queue, ledger, keys, admin listener. Serve has the listener, starts and
replaces replicas, and chooses among them. docs/deploy.md says what is lost by that.
"""

import asyncio
import os
from collections.abc import Mapping

from ray import serve

from tidegate.cli.access import AccessError
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_loading import load_models
from tidegate.cli.open_ledger import check_ledger
from tidegate.cli.open_quotas import check_quotas
from tidegate.cli.public_edge import check_edge
from tidegate.cli.settings_sources import SettingsError
from tidegate.cli.wiring import open_log
from tidegate.http.asgi import AsgiApp
from tidegate.http.listener import ListenError
from tidegate.lifecycle.ledger_port import LedgerBroken
from tidegate.lifecycle.quota_port import QuotaBroken
from tidegate.serve_app.arguments import read_arguments
from tidegate.serve_app.patience import Patience
from tidegate.serve_app.proxy_guard import IMPORT_PATH
from tidegate.serve_app.replica_app import ReplicaApp
from tidegate.serve_app.replica_server import ReplicaFailed, ReplicaServer, own_loop_reports

MAX_ONGOING_REQUESTS = 1_000_000
"""More than the server lets in: who has to wait or is refused is decided by its own queue, in its own words."""
_GUARD_VARIABLE = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"


@serve.deployment(
    name="Tidegate",
    max_ongoing_requests=MAX_ONGOING_REQUESTS,
    graceful_shutdown_timeout_s=90,
    health_check_period_s=5,
    health_check_timeout_s=30,
)
@serve.ingress()
class TidegateReplica:
    """One server. Its methods are called by Serve, all on one event loop."""

    def __init__(self, args: dict[str, object]) -> None:
        """Raises ReplicaFailed for what keeps it from serving."""
        try:
            settings, warnings = read_arguments(args, os.environ)
            warnings += check_edge(settings)
            warnings += [*check_ledger(settings), *check_quotas(settings)]
            loaded = load_models(settings)
        except (SettingsError, ListenError, LedgerBroken, LoadError, QuotaBroken) as error:
            raise ReplicaFailed(str(error)) from None
        self._settings, self._loaded = settings, loaded
        self._logger = open_log(settings)
        self._patience = Patience()
        self._server: ReplicaServer | None = None
        if os.environ.get(_GUARD_VARIABLE) != IMPORT_PATH:
            warnings.append(f"{_GUARD_VARIABLE} is not {IMPORT_PATH}: callers may tell Serve what they should not")
        for words in warnings:
            self._logger.warning("replica", reason=words)

    async def __serve_build_asgi_app__(self) -> AsgiApp:
        own_loop_reports(self._logger)
        try:
            self._server = ReplicaServer(self._settings, self._loaded, self._logger)
        except (AccessError, ListenError) as error:
            raise ReplicaFailed(str(error)) from None
        await self._server.start()
        return ReplicaApp(self._server.app, self._server.stop)

    def reconfigure(self, user_config: Mapping[str, object]) -> None:
        """Takes `user_config` of the deployment, at the start and whenever it alone changes. Raises UserConfigError."""
        self._patience.reconfigure(user_config)

    async def check_health(self) -> None:
        """Raises ReplicaFailed when Serve had better replace this replica."""
        is_ready = self._server is not None and self._server.is_ready
        if self._patience.is_over(is_ready=is_ready, now=asyncio.get_running_loop().time()):
            raise ReplicaFailed(f"no engine for {self._patience.patience_s:g} s")


def build(args: dict[str, object]) -> serve.Application:
    """Returns the application for `args` of a Serve configuration: `config_file` and `settings`."""
    return TidegateReplica.bind(args)  # type: ignore[attr-defined] # made by the decorators
