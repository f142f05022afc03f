"""`tidegate serve`: loads, starts, says so, waits for a signal, drains, stops."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Coroutine

import uvloop
from rich.console import Console

from tidegate.cli.model_loading import LoadedModel, LoadError, load_model
from tidegate.cli.model_source import ModelSourceError
from tidegate.cli.ready_text import ready_text, starting_text
from tidegate.cli.settings import Settings
from tidegate.cli.wiring import ServerParts, build_parts, build_server, engine_options, install_loop_reports, open_log
from tidegate.engines.local.supervisor import EngineStartFailed, Supervisor
from tidegate.errors import ServerDraining
from tidegate.http.listener import ListenError, bind_tcp
from tidegate.http.server import HttpServer
from tidegate.lifecycle.drain import DrainEvent

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
_LAST_WORDS_S = 2.0
"""How long streams have to take their error event after the drain."""


def run_serve(settings: Settings) -> int:
    """Serves until a signal. Returns the exit code: 0 after a drain, 1 when the engine or a listener failed."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        loaded = load_model(settings)
    except (LoadError, ModelSourceError) as error:
        console.print(f"tidegate: {error}", style="red", markup=False)
        return EXIT_USAGE
    try:
        public, admin = _bind(settings)
    except ListenError as error:
        console.print(f"tidegate: {error}", style="red", markup=False)
        return EXIT_FAILED
    console.print(starting_text(settings, loaded), markup=False)
    return _run(_serve(settings, loaded, public, admin, console))


def _run(main: Coroutine[None, None, int]) -> int:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def _bind(settings: Settings) -> tuple[socket.socket, socket.socket]:
    server = settings.server
    if not _is_loopback(server.admin_host):
        raise ListenError(
            f"the admin listener has no credential and must stay on loopback, not {server.admin_host}; "
            "reach it through a tunnel"
        )
    public = bind_tcp(
        server.host,
        server.port,
        send_buffer_bytes=server.send_buffer_bytes,
        write_timeout_s=server.slow_client_timeout_s,
    )
    try:
        return public, bind_tcp(server.admin_host, server.admin_port)
    except ListenError:
        public.close()
        raise


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


async def _serve(
    settings: Settings, loaded: LoadedModel, public: socket.socket, admin: socket.socket, console: Console
) -> int:
    logger = open_log(settings)
    install_loop_reports()
    stop = _stop_on_signals()
    supervisor = Supervisor(engine_options(settings, loaded))
    parts = build_parts(settings, loaded, supervisor.engine, logger)
    servers = [build_server(settings, parts.public_app, public), build_server(settings, parts.admin_app, admin)]
    try:
        await supervisor.start()
        for server in servers:
            await server.start()
        started = await _wait_ready(supervisor, stop, console)
        if started:
            console.print(ready_text(settings, loaded, servers[0].url, servers[1].url), markup=False)
            await _wait_end(stop, servers)
            await _drain(parts, settings.server.drain_timeout_s, console)
        return EXIT_OK if started or stop.is_set() else EXIT_FAILED
    finally:
        for server in servers:
            await server.stop()
        await supervisor.aclose()
        parts.service.close()


def _stop_on_signals() -> asyncio.Event:
    """SIGTERM and SIGINT begin the drain; a second one changes nothing, so that clean-up is never cut short."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


async def _wait_ready(supervisor: Supervisor, stop: asyncio.Event, console: Console) -> bool:
    """Waits for the engine's first readiness; False when it failed for good, or a signal came first."""
    ready = asyncio.ensure_future(supervisor.wait_ready())
    stopped = asyncio.ensure_future(stop.wait())
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
        console.print("`tidegate doctor` looks for the cause.", markup=False)
        return False
    return True


async def _wait_end(stop: asyncio.Event, servers: list[HttpServer]) -> None:
    """Waits for a signal, or for a listener that ended by itself."""
    tasks = [asyncio.ensure_future(stop.wait())]
    tasks += [asyncio.ensure_future(server.wait_stopped()) for server in servers]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _drain(parts: ServerParts, timeout_s: float, console: Console) -> None:
    """Lets running requests finish; ends what is left with an error event."""
    parts.drain.apply(DrainEvent.BEGIN)
    if parts.admission.num_live:
        console.print(f"tidegate: finishing {parts.admission.num_live} running requests, at most {timeout_s:g} s")
    await _wait_empty(parts, timeout_s)
    parts.drain.apply(DrainEvent.END)
    if parts.service.live:
        parts.service.expire_all(ServerDraining("The server is shutting down."))
        await _wait_empty(parts, _LAST_WORDS_S)
    sys.stderr.flush()


async def _wait_empty(parts: ServerParts, timeout_s: float) -> None:
    """Waits until no request is live, at most `timeout_s` seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await parts.service.wait_empty()
