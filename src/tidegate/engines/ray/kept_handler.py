"""A signal's handler as the kernel has it, kept while a library is loaded that would put its own in front.

Ray's core sets one for SIGTERM, in C, whatever thread it is started on: it writes a stack to standard error, hands the
signal on, and aborts the process three seconds later, in the middle of a drain. At its own end it takes that handler
away and leaves none, so that a signal kills a server that is about to end well.
"""

import ctypes
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_ACTION_BYTES = 1024
"""More than `struct sigaction` has anywhere. It is read and written whole, and never looked into."""


@contextmanager
def kept_handler(number: signal.Signals) -> Iterator[None]:
    """Puts the handler of signal `number` back at the end. On any thread. Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    action = ctypes.create_string_buffer(_ACTION_BYTES)
    _check(library.sigaction(int(number), None, action))
    try:
        yield
    finally:
        _check(library.sigaction(int(number), action, None))


def _check(status: int) -> None:
    if status != 0:
        raise OSError(ctypes.get_errno(), "sigaction")
