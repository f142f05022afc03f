"""The tie between an engine process and the process that started it: it never outlives its parent."""

import ctypes
import os
import signal
import stat
import sys

_PR_SET_PDEATHSIG = 1
"""prctl(2), Linux: the signal that this process gets when the thread that made it ends."""


def die_with_parent() -> None:
    """Asks the kernel to kill this process when its parent dies. Does nothing where the kernel cannot.

    SIGKILL, because a forward pass that never returns would not see anything milder.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class ParentWatch:
    """Notices the parent's end on any system: it has another id then, and our standard input is at its end."""

    def __init__(self, parent_id: int | None) -> None:
        self._parent_id = os.getppid() if parent_id is None else parent_id

    @property
    def is_gone(self) -> bool:
        return os.getppid() != self._parent_id

    @property
    def stdin_fd(self) -> int | None:
        """Standard input where it is a pipe, which ends with the parent; None for a terminal or a file."""
        try:
            mode = os.fstat(0).st_mode
        except OSError:
            return None
        return 0 if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None
