"""`tidegate serve`: loads, starts, says so, waits for a signal, drains, stops."""

import asyncio
import signal

import uvloop
from rich.console import Console

from tidegate.cli.model_loading import LoadedModel, LoadError, load_model
from tidegate.cli.ready_text import ready_text, starting_text
from tidegate.cli.running_server import RunningServer, Sockets
from tidegate.cli.settings import Settings
from tidegate.cli.wiring import install_loop_reports, open_log
from tidegate.engines.local.supervisor import EngineStartFailed
from tidegate.http.listener import ListenError

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


def run_serve(settings: Settings) -> int:
    """Serves until a signal. Returns the exit code: 0 after a drain, 1 when the engine or a listener failed."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        loaded = load_model(settings)
        sockets = Sockets(settings)
    except (LoadError, ListenError) as error:
        console.print(f"tidegate: {error}", style="red", markup=False)
        return EXIT_USAGE if isinstance(error, LoadError) else EXIT_FAILED
    console.print(starting_text(settings, loaded), markup=False)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, loaded, sockets, console))


async def _serve(settings: Settings, loaded: LoadedModel, sockets: Sockets, console: Console) -> int:
    logger = open_log(settings)
    install_loop_reports()
    stop = _stop_on_signals()
    server = RunningServer(settings, loaded, sockets, logger)
    try:
        await server.start()
        if not await _wait_ready(server, stop, console):
            return EXIT_OK if stop.is_set() else EXIT_FAILED
        console.print(ready_text(settings, loaded, server.public.url, server.admin.url), markup=False)
        await _wait_end(stop, server)
        if num_live := len(server.parts.service.live):
            console.print(f"tidegate: finishing {num_live} requests, at most {settings.server.drain_timeout_s:g} s")
        await server.drain()
        return EXIT_OK if stop.is_set() else EXIT_FAILED
    finally:
        await server.stop()


def _stop_on_signals() -> asyncio.Event:
    """SIGTERM and SIGINT begin the drain; a second one changes nothing, so that clean-up is never cut short."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


async def _wait_ready(server: RunningServer, stop: asyncio.Event, console: Console) -> bool:
    """Waits for the engine's first readiness; False when it failed for good, or a signal came first."""
    ready = asyncio.ensure_future(server.supervisor.wait_ready())
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


async def _wait_end(stop: asyncio.Event, server: RunningServer) -> None:
    """Waits for a signal, or for a listener that ended by itself."""
    tasks: list[asyncio.Future[object]] = [
        asyncio.ensure_future(stop.wait()),
        asyncio.ensure_future(server.public.wait_stopped()),
        asyncio.ensure_future(server.admin.wait_stopped()),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
