"""How a server process ends: exit codes, and the signals that begin a drain."""

import asyncio
import signal

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2


def stop_on_signals() -> asyncio.Event:
    """SIGTERM and SIGINT begin the drain; a second one changes nothing, so that clean-up is never cut short."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
