"""Owners: whether the process that made a claim still lives, on one host, however it ended.

Each process keeps one file locked beside the ledger. The kernel gives the lock back at the very moment the process
ends, SIGKILL included, so its claims block nobody. Needs a local file system: locks of network file systems may
outlive a process.
"""

import fcntl
import os
from pathlib import Path


class OwnerLock:
    """Held from construction to `release`. `ledger` is the path of the shared file, `name` is unique for ever.

    Raises OSError.
    """

    def __init__(self, ledger: Path, name: str) -> None:
        self.name = name
        self._ledger = ledger
        self._path = _path(ledger, name)
        # Locked before it has its name: nobody who looks for owners can find it unlocked.
        unnamed = self._path.with_name(self._path.name + ".new")
        self._descriptor: int | None = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        os.rename(unnamed, self._path)

    def release(self) -> None:
        """Lets go. Idempotent."""
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    def is_alive(self, name: str) -> bool:
        """Whether the process of that name lives. Clears away what a dead one left."""
        if name == self.name:
            return True
        return is_owner_alive(self._ledger, name)

    def clear_dead(self) -> None:
        """Clears away the files of all dead owners."""
        prefix = _path(self._ledger, "").name
        for path in self._ledger.parent.glob(prefix + "*"):
            if path.suffix != ".new":
                self.is_alive(path.name.removeprefix(prefix))


def is_owner_alive(ledger: Path, name: str) -> bool:
    """See `OwnerLock.is_alive`."""
    path = _path(ledger, name)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two who look do not take each other for it
    except BlockingIOError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(descriptor)


def _path(ledger: Path, name: str) -> Path:
    return ledger.with_name(f"{ledger.name}.owner-{name}")
