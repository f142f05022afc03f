"""LiveKeys: the keys of a running server, never older than about half a second.

A request costs no query. At most every POLL_S, when a request comes, one `PRAGMA data_version` tells whether any
process has written to the file, and only when a key has changed are the keys read again. Its rules:

- The first key closes the server for everybody; afterwards it stays closed, even when the file goes away.
- A file that cannot be read any more leaves the keys as they were for STALE_S, and then lets nobody in.
- Reading never waits for a lock: whoever writes is done at the next look.
- When keys were last used is collected here and written every FLUSH_S, aside from the event loop.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from tidegate.lifecycle.key_ring import KeyRing
from tidegate.stores.key_file import (
    KeyFileBusy,
    KeyFileError,
    check_mode,
    explain,
    is_initialised,
    open_key_file,
    read_records,
)
from tidegate.stores.sqlite_keys import LOCK_TIMEOUT_S, SqliteKeys

POLL_S = 0.5
STALE_S = 60.0
FLUSH_S = 60.0

RunAside = Callable[[Callable[[], None]], None]


def run_in_thread(work: Callable[[], None]) -> None:
    """Carries out `work` without waiting for it."""
    threading.Thread(target=work, name="last use of keys", daemon=True).start()


class LiveKeys:
    """Belongs to one event loop. `on_fault` is told, once, each time that the file cannot be read any more."""

    def __init__(self, path: Path, *, on_fault: Callable[[str], None], run_aside: RunAside = run_in_thread) -> None:
        self._path = path
        self._on_fault = on_fault
        self._run_aside = run_aside
        self._ring = KeyRing()
        self._connection: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        self._version: int | None = None
        self._revision: int | None = None
        self._looked_at: float | None = None
        self._fresh_at = 0.0
        self._flushed_at = 0.0
        self._is_faulty = False
        self._used: dict[str, float] = {}

    def load(self, now: float) -> KeyRing:
        """Reads the keys for the first time, waiting for locks. Raises KeyFileError when they cannot be read."""
        self._looked_at = self._fresh_at = self._flushed_at = now
        try:
            self._refresh(LOCK_TIMEOUT_S)
        except KeyFileError:
            self._disconnect()
            raise
        if self._connection is not None:
            self._connection.execute("PRAGMA busy_timeout = 0")
        return self._ring

    def look(self, now: float) -> KeyRing:
        """Returns the keys as they are, or were at most POLL_S ago. `now` is an instant of the monotonic clock."""
        if self._looked_at is not None and now - self._looked_at < POLL_S:
            return self._ring
        self._looked_at = now
        try:
            self._refresh(0.0)
        except KeyFileBusy:
            self._grow_stale(now)
        except KeyFileError as error:
            if not self._is_faulty:
                self._on_fault(str(error))
            self._is_faulty = True
            self._grow_stale(now)
        else:
            self._is_faulty = False
            self._fresh_at = now
        if self._used and now - self._flushed_at >= FLUSH_S:
            self._flushed_at = now
            self._run_aside(self._take_flush())
        return self._ring

    def note_use(self, key_id: str, wall: float) -> None:
        """Notes that a key was used at an instant of the wall clock. Writes nothing yet."""
        self._used[key_id] = wall

    def close(self) -> None:
        """Writes what was noted, and lets go of the file. Idempotent."""
        if self._used:
            self._take_flush()()
        self._disconnect()

    def _grow_stale(self, now: float) -> None:
        if now - self._fresh_at >= STALE_S:
            self._ring = KeyRing(is_closed=True)
            self._revision = self._version = None

    def _refresh(self, timeout_s: float) -> None:
        file_id = self._identify_file()
        if file_id is None:
            self._disconnect()
            self._ring = KeyRing(is_closed=self._ring.is_closed)
            return
        try:
            if self._connection is None or file_id != self._file_id:
                self._disconnect()
                self._connection = open_key_file(self._path, timeout_s=timeout_s)
                self._file_id = file_id
            self._read_changes(self._connection)
        except sqlite3.Error as error:
            failure = explain(error, self._path)
            if not isinstance(failure, KeyFileBusy):
                self._disconnect()
            raise failure from None

    def _read_changes(self, connection: sqlite3.Connection) -> None:
        [[version]] = connection.execute("PRAGMA data_version").fetchall()
        if version == self._version:
            return
        connection.execute("BEGIN")
        try:
            if is_initialised(connection):
                [[revision]] = connection.execute("SELECT coalesce(max(number), 0) FROM revision").fetchall()
                if revision != self._revision:
                    self._ring = self._read_ring(connection)
                    self._revision = revision
        finally:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("COMMIT")
        self._version = version

    def _read_ring(self, connection: sqlite3.Connection) -> KeyRing:
        records = read_records(connection, "revoked_at IS NULL")
        [[num_keys]] = connection.execute("SELECT count(*) FROM keys").fetchall()
        is_closed = self._ring.is_closed or num_keys > 0
        return KeyRing({record.digest: record for record in records}, is_closed)

    def _identify_file(self) -> tuple[int, int] | None:
        """Returns which file lies at the path now: a restored copy is another one. None where there is none."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeyFileError(f"{self._path} cannot be read: {error.strerror}.") from None
        check_mode(self._path)
        return found.st_dev, found.st_ino

    def _take_flush(self) -> Callable[[], None]:
        used, self._used = self._used, {}

        def write() -> None:
            # Where it fails, a date in a list is older than it might be: nothing that a caller should feel.
            with contextlib.suppress(KeyFileError):
                SqliteKeys(self._path).write_last_used(used)

        return write

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._file_id = self._version = self._revision = None
