"""The server's composition root: from settings to a graph of objects. The only place that names implementations."""

import asyncio
import logging
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs
from structlog.typing import FilteringBoundLogger

from tidegate import __version__
from tidegate.cli.access import Access, open_access
from tidegate.cli.engine_settings import told_engine
from tidegate.cli.model_engines import ModelSite, engine_views, has_rows_of_engines, poison_of, report_engines
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.model_service import build_gates, build_service
from tidegate.cli.open_ledger import StartableLedger, ledger_rules, open_ledger
from tidegate.cli.open_quotas import OwnGate
from tidegate.cli.open_telemetry import Telemetry, open_telemetry
from tidegate.cli.settings import Settings
from tidegate.cli.sockets import is_loopback
from tidegate.cli.state_folder import CALIBRATION_FILE, StateFolderError, locate_state_folder, make_private_folder
from tidegate.engine.options import EngineOptions
from tidegate.engines.life.restart_policy import RestartSettings
from tidegate.engines.local.supervisor import SupervisorSettings
from tidegate.grammar.registry import NO_BACKEND
from tidegate.http.app import AppPorts, make_admin_app, make_public_app
from tidegate.http.asgi import AsgiApp
from tidegate.http.authorise import Authorise
from tidegate.http.cors import CorsPolicy
from tidegate.http.server import HttpServer
from tidegate.http.service_port import Admin, Operator
from tidegate.http.settings import HttpSettings
from tidegate.http.settings import ServerSettings as HttpServerSettings
from tidegate.http.tls import TlsFiles
from tidegate.lifecycle.admission_statistics import AdmissionStatistics
from tidegate.lifecycle.drain import Drain
from tidegate.observability.access_log import AccessLog, Write, write_all
from tidegate.observability.audit import AuditLog
from tidegate.observability.composite_observer import CompositeObserver
from tidegate.observability.exposition import render_metrics
from tidegate.observability.log_observer import LogObserver
from tidegate.observability.logs import LogFormat, LogSettings, configure_logging
from tidegate.observability.metrics import MetricsObserver
from tidegate.observability.observer import Observer
from tidegate.serving.admin import AdminView
from tidegate.serving.answer_recorder import AnswerRecorder
from tidegate.serving.grammar_check import join_accounts
from tidegate.serving.idempotent_service import IdempotentService
from tidegate.serving.model_router import ModelRouter
from tidegate.serving.remote_gate import RemoteGate
from tidegate.serving.service import Service
from tidegate.serving.shared_quota_gate import SharedQuotaGate
from tidegate.system import SystemClock, entropy

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerParts:
    """What a running server consists of, beside its listeners and its engine."""

    service: Service | ModelRouter
    ledger: StartableLedger | None
    recorder: AnswerRecorder | None
    drain: Drain
    gate: OwnGate | RemoteGate
    admin: AdminView
    metrics: MetricsObserver
    observer: Observer
    public_app: AsgiApp
    access: Access
    telemetry: Telemetry

    def accounts_of(self, model: str) -> AdmissionStatistics:
        """Returns the gate's accounts of one model. Raises RuntimeError where the gate is another process's."""
        if isinstance(self.gate, RemoteGate):
            raise RuntimeError("the gate is another process's")
        return self.gate.statistics_of(model)


def open_log(settings: Settings) -> FilteringBoundLogger:
    """Makes standard error the log of this process."""
    chosen = LogSettings(settings.log.level, LogFormat(settings.log.format))
    return configure_logging(chosen, sys.stderr, SystemClock().wall)


def engine_options(settings: Settings, loaded: LoadedModel) -> EngineOptions:
    """Returns what the engine process is told."""
    told = told_engine(settings, str(loaded.source.path) if loaded.source is not None else None)
    return structs.replace(
        told,
        calibration_file=_calibration_file(settings),
        grammar_backend=settings.grammar.backend if loaded.grammar.compiler is not None else NO_BACKEND,
    )


def build_parts(
    settings: Settings,
    sites: tuple[ModelSite, ...],
    logger: FilteringBoundLogger,
    gate_socket: Path | None = None,
) -> ServerParts:
    """Builds the server around the engines of its models.

    `gate_socket` is where another process decides who enters the engines; None: this one does. Raises AccessError when
    keys or the admin credential cannot be read, LedgerBroken when the ledger cannot be opened.
    """
    clock = SystemClock()
    drain = Drain()
    gate = build_gates(sites, drain) if gate_socket is None else RemoteGate(gate_socket, drain, poison_of(sites))
    accounts = None if isinstance(gate, RemoteGate) else gate.statistics
    ledger = open_ledger(settings)
    rules = ledger_rules(settings)
    views = engine_views(sites)
    metrics = MetricsObserver(views.status, accounts, __version__, ledger.statistics if ledger is not None else None)
    metrics.engines = views.rows if has_rows_of_engines(sites) else None
    observer = CompositeObserver([metrics, LogObserver(logger, has_access_log=settings.log.access)])
    report_engines(sites, observer, drain)
    services = [build_service(site, gate, drain, observer, rules) for site in sites]
    checks = [service.grammars for service in services if service.grammars is not None]
    metrics.grammars = (lambda: join_accounts([check.accounts() for check in checks])) if checks else None
    service = services[0] if len(services) == 1 else ModelRouter(services)
    recorder = AnswerRecorder(ledger, observer, rules.max_answer_bytes) if ledger is not None else None
    idempotent = IdempotentService(service, recorder, rules, observer, clock)
    admin = AdminView(service, clock.now, lambda accept: render_metrics(metrics.registry, accept), accounts, views)
    access = open_access(settings, clock)
    telemetry = open_telemetry(settings)
    metrics.quotas = gate.quota_statistics if isinstance(gate, SharedQuotaGate) else None
    metrics.telemetry = None if telemetry.pump is None else telemetry.pump.statistics
    ports = AppPorts(
        observer=observer,
        clock=clock,
        entropy=entropy,
        authorise=access.public,
        write_access=write_all(_writes(settings, logger, telemetry)),
        tracing=telemetry.policy,
    )
    http = _http_settings(settings)
    return ServerParts(
        service=service,
        ledger=ledger,
        recorder=recorder,
        drain=drain,
        gate=gate,
        admin=admin,
        metrics=metrics,
        observer=observer,
        public_app=make_public_app(idempotent, settings=http, ports=ports),
        access=access,
        telemetry=telemetry,
    )


def _calibration_file(settings: Settings) -> str | None:
    """Where what suits this machine is remembered; None where nothing is to be timed."""
    if not settings.engine.calibrate or settings.engine.kind != "llama":
        return None
    try:
        return str(make_private_folder(locate_state_folder(settings)) / CALIBRATION_FILE)
    except StateFolderError:
        return None


def _writes(settings: Settings, logger: FilteringBoundLogger, telemetry: Telemetry) -> list[Write]:
    """Returns what hears of every request at its end."""
    writes: list[Write] = [AccessLog(logger).write] if settings.log.access else []
    return writes if telemetry.pump is None else [*writes, telemetry.pump.write]


def build_admin_app(
    admin: Admin,
    operator: Operator,
    settings: Settings,
    *,
    logger: FilteringBoundLogger,
    observer: Observer,
    authorise: Authorise,
) -> AsgiApp:
    """Returns the admin application. On loopback only requests that name loopback are answered."""
    access = write_all(_writes(settings, logger, Telemetry()))
    return make_admin_app(
        admin,
        operator,
        settings=_http_settings(settings),
        ports=AppPorts(observer=observer, entropy=entropy, authorise=authorise, write_access=access),
        audit=AuditLog(logger).write,
        is_local=is_loopback(settings.server.admin_host),
    )


def supervisor_settings(settings: Settings) -> SupervisorSettings:
    """Returns how the engine process is watched and restarted."""
    defaults = RestartSettings()
    first_wait_s = settings.engine.restart_wait_s
    restart = RestartSettings(first_wait_s=first_wait_s, max_wait_s=max(defaults.max_wait_s, first_wait_s))
    return SupervisorSettings(restart=restart, stall_timeout_s=settings.engine.stall_timeout_s)


def _http_settings(settings: Settings) -> HttpSettings:
    return HttpSettings(
        body_bytes=settings.limits.body_bytes,
        body_timeout_s=settings.server.body_timeout_s,
        heartbeat_s=settings.server.heartbeat_s,
        slow_client_timeout_s=settings.server.slow_client_timeout_s,
        queue_full_status=settings.admission.queue_full_status,
        pending_body_bytes=settings.limits.pending_body_bytes,
        cors=CorsPolicy(settings.cors.origins, settings.cors.max_age_s),
        has_open_metrics=settings.auth.open_metrics,
    )


def build_server(settings: Settings, app: AsgiApp, sock: socket.socket, *, tls: TlsFiles | None = None) -> HttpServer:
    """Returns the HTTP server of the settings' choice around `app` on a bound socket."""
    options = HttpServerSettings(tls=tls)
    if settings.server.http == "uvicorn":
        from tidegate.http.uvicorn_server import UvicornServer

        return UvicornServer(app, sock, options)
    from tidegate.http.granian_server import GranianServer

    return GranianServer(app, sock, options)


def install_loop_reports() -> None:
    """Sends what the event loop would print into the log."""

    def report(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        fault = context.get("exception")
        exc_info = fault if isinstance(fault, BaseException) else None
        _log.error(str(context.get("message", "the event loop reports a fault")), exc_info=exc_info)

    asyncio.get_running_loop().set_exception_handler(report)
