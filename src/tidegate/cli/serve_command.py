"""`tidegate serve`: loads, starts, says so, waits for a signal, drains, stops."""

import asyncio
import os

import uvloop
from rich.console import Console

from tidegate.cli.access import AccessError, gather_access_facts, refuse_exposure
from tidegate.cli.drain_order import DrainOrder
from tidegate.cli.engine_specs import model_specs
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_loading import LoadedModel, load_models
from tidegate.cli.open_ledger import check_ledger
from tidegate.cli.open_quotas import check_quotas
from tidegate.cli.open_telemetry import check_telemetry
from tidegate.cli.pooled_server import PooledServer
from tidegate.cli.prefix_cache_text import prefix_cache_text
from tidegate.cli.process_end import EXIT_FAILED, EXIT_OK, EXIT_USAGE, ignore_signals, on_signals
from tidegate.cli.public_edge import check_edge
from tidegate.cli.ready_text import grammar_text, memory_text, ready_text, starting_text
from tidegate.cli.remote_settings import idle_text
from tidegate.cli.running_server import RunningServer, wait_first
from tidegate.cli.service_manager import ServiceManager
from tidegate.cli.settings import Settings
from tidegate.cli.sockets import Sockets
from tidegate.cli.wiring import install_loop_reports, open_log
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.http.listener import ListenError
from tidegate.lifecycle.ledger_port import LedgerBroken
from tidegate.lifecycle.quota_port import QuotaBroken
from tidegate.telemetry.otlp_exporter import TelemetryBroken


def run_serve(settings: Settings) -> int:
    """Serves until a signal. Returns the exit code: 0 after a drain, 1 when the engine or a listener failed."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        warnings = [*refuse_exposure(settings), *check_edge(settings), *check_telemetry(settings)]
        warnings += [*check_ledger(settings), *check_quotas(settings)]
        loaded = load_models(settings)
        sockets = Sockets(settings)
    except (AccessError, LedgerBroken, LoadError, ListenError, QuotaBroken, TelemetryBroken) as error:
        console.print(f"tidegate: {error}", style="red", markup=False)
        return EXIT_FAILED if isinstance(error, ListenError) else EXIT_USAGE
    warnings += [model.grammar.warning for model in loaded if model.grammar.warning is not None]
    if (idle := idle_text(settings)) is not None:
        warnings.append(idle)
    for words in warnings:
        console.print(f"tidegate: {words}", style="yellow", markup=False)
    for spec, model in zip(model_specs(settings), loaded, strict=True):
        console.print(starting_text(spec.settings, model, num_engines=len(spec.engines)), markup=False)
        console.print(grammar_text(model), markup=False)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, loaded, sockets, console))


async def _serve(settings: Settings, loaded: tuple[LoadedModel, ...], sockets: Sockets, console: Console) -> int:
    logger = open_log(settings)
    install_loop_reports()
    order = DrainOrder(settings.server)
    on_signals(order.give)
    manager = ServiceManager(os.environ)
    kind = RunningServer if settings.server.workers == 1 else PooledServer
    server: RunningServer | PooledServer = kind(settings, loaded, sockets, logger, order)
    try:
        await server.start()
        if not await _wait_ready(server, order, console):
            return EXIT_OK if order.is_given else EXIT_FAILED
        fault = server.fleet.fault
        if fault is not None:
            console.print(f"tidegate: {fault}", style="red", markup=False)
            return EXIT_FAILED
        _tell_ready(server, settings, console)
        manager.tell_ready(server.public_url)
        await wait_first(order.wait_given(), server.wait_stopped())
        manager.tell_ending(order.timeout_s)
        console.print(f"tidegate: finishing running requests, at most {order.timeout_s:g} s")
        was_asked = order.is_given
        await server.drain()
        return EXIT_OK if was_asked else EXIT_FAILED
    finally:
        await server.stop()
        ignore_signals()


def _tell_ready(server: RunningServer | PooledServer, settings: Settings, console: Console) -> None:
    needs_key = gather_access_facts(settings).num_keys > 0
    for name, reason in server.fleet.missing.items():
        console.print(f"tidegate: engine {name}: {reason}; serving without it", style="yellow", markup=False)
    for site in server.fleet.sites:
        model = site.engines.engine.statistics().model
        lacking = prefix_cache_text(site.settings, model)
        for line in (f"tidegate: {lacking}" if lacking else None, memory_text(model)):
            if line is not None:
                console.print(line, markup=False)
    site = server.fleet.sites[0]
    model = site.engines.engine.statistics().model
    text = ready_text(site.settings, site.loaded, server.public_url, server.admin.url, needs_key=needs_key, model=model)
    console.print(text, markup=False)


async def _wait_ready(server: RunningServer | PooledServer, order: DrainOrder, console: Console) -> bool:
    """Waits for the engine's first readiness; False when it failed for good, or the order to end came first."""
    ready = asyncio.ensure_future(server.wait_ready())
    stopped = asyncio.ensure_future(order.wait_given())
    await asyncio.wait({ready, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not ready.done():
        ready.cancel()
        return False
    try:
        ready.result()
    except EngineStartFailed as error:
        console.print(f"tidegate: {error}", style="red", markup=False)
        for line in error.last_lines:
            console.print(f"  {line}", markup=False)
        if error.exit_code is not None:
            console.print("`tidegate doctor` looks for the cause.", markup=False)
        return False
    return True
