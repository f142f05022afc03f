"""SqliteKeys: makes, lists and revokes API keys in their file. For managing keys; servers use `LiveKeys`."""

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from tidegate.lifecycle.key_policy import KeyRecord
from tidegate.stores.key_file import (
    MAX_KEYS,
    KeyFileError,
    explain,
    is_initialised,
    make_key_file,
    open_key_file,
    read_records,
    write_record,
)

LOCK_TIMEOUT_S = 5.0


class NameTaken(Exception):
    """A key of that name exists and is not revoked. `key_id` says which."""

    def __init__(self, key_id: str) -> None:
        super().__init__(key_id)
        self.key_id = key_id


class SqliteKeys:
    """Opens the file anew for each call, so any number of programs may use it. Every method raises KeyFileError."""

    def __init__(self, path: Path, *, max_keys: int = MAX_KEYS) -> None:
        self.path = path
        self._max_keys = max_keys

    def create(self, record: KeyRecord) -> bool:
        """Stores a new key; makes the file where it is absent. Returns whether it is the first one ever.

        Raises NameTaken, and KeyFileError when there are as many keys as may be. Forgets the oldest revoked ones
        beyond that number.
        """
        with self._transaction(make_key_file(self.path, timeout_s=LOCK_TIMEOUT_S)) as connection:
            found = connection.execute(
                "SELECT key_id FROM keys WHERE name = ? AND revoked_at IS NULL", (record.principal.name,)
            ).fetchone()
            if found is not None:
                raise NameTaken(found[0])
            [[num_live, num_all]] = connection.execute(
                "SELECT count(*) FILTER (WHERE revoked_at IS NULL), count(*) FROM keys"
            ).fetchall()
            if num_live >= self._max_keys:
                raise KeyFileError(f"{self.path} holds {num_live} keys, the most it may; revoke some.")
            connection.execute(
                "DELETE FROM keys WHERE key_id IN (SELECT key_id FROM keys WHERE revoked_at IS NOT NULL"
                " ORDER BY revoked_at DESC LIMIT -1 OFFSET ?)",
                (self._max_keys,),
            )
            write_record(connection, record)
        return bool(num_all == 0)

    def list_keys(self) -> list[KeyRecord]:
        """Returns all keys, revoked ones included, oldest first; none where there is no file."""
        if not self.path.exists():
            return []
        with contextlib.closing(open_key_file(self.path, timeout_s=LOCK_TIMEOUT_S)) as connection:
            try:
                return read_records(connection) if is_initialised(connection) else []
            except sqlite3.Error as error:
                raise explain(error, self.path) from None

    def revoke(self, key_id: str, wall: float) -> bool:
        """Ends a key at once and for good. Returns False when it was revoked before, or never was."""
        with self._transaction(open_key_file(self.path, timeout_s=LOCK_TIMEOUT_S)) as connection:
            changed = connection.execute(
                "UPDATE keys SET revoked_at = ? WHERE key_id = ? AND revoked_at IS NULL", (wall, key_id)
            )
            return changed.rowcount == 1

    def write_last_used(self, used: Mapping[str, float]) -> None:
        """Stores the instants of the wall clock at which keys were used, by id; older ones change nothing."""
        with self._transaction(open_key_file(self.path, timeout_s=LOCK_TIMEOUT_S)) as connection:
            connection.executemany(
                "UPDATE keys SET last_used_at = ?2 WHERE key_id = ?1 AND coalesce(last_used_at, 0) < ?2", used.items()
            )

    @contextlib.contextmanager
    def _transaction(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(connection):
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise explain(error, self.path) from None
