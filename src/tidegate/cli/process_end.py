"""How a server process ends: exit codes, and the signals that begin a drain."""

import asyncio
import signal
from types import FrameType

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_on_signals() -> asyncio.Event:
    """SIGTERM and SIGINT begin the drain; a second one changes nothing, so that clean-up is never cut short."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hear(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop.set)

    # Not the loop's own handlers: closing a loop gives those back, and then a signal would kill what is left of us.
    for number in _SIGNALS:
        signal.signal(number, hear)
    return stop


def ignore_signals() -> None:
    """From here on a signal changes nothing, not even the exit code. For the very end."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
