"""How a server process ends: exit codes, and the signals that begin a drain."""

import asyncio
import signal
from collections.abc import Callable
from types import FrameType

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def on_signals(give_order: Callable[[], None]) -> None:
    """SIGTERM and SIGINT call `give_order` on the event loop, each of them: a later one must change nothing."""
    loop = asyncio.get_running_loop()

    def hear(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(give_order)

    # Not the loop's own handlers: closing a loop gives those back, and then a signal would kill what is left of us.
    for number in _SIGNALS:
        signal.signal(number, hear)


def ignore_signals() -> None:
    """From here on a signal changes nothing, not even the exit code. For the very end."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
