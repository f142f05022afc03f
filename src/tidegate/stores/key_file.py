"""The SQLite file of API keys: its schema, how it is opened, and its rows as records.

Every change of a key, by whatever program, raises `revision` (triggers see to it); writing when a key was last used
does not. So a reader that sees the file change knows from one number whether it has to read the keys again.
"""

import os
import sqlite3
import stat
from pathlib import Path

import msgspec

from tidegate.lifecycle.key_policy import KeyRecord
from tidegate.lifecycle.principal import Principal, Quotas

MAX_KEYS = 4096
"""Keys that are not revoked; and as many revoked ones are remembered."""

_VERSION = 1
_COLUMNS = (
    "key_id, name, digest, models, routes, priority_min, priority_max, concurrency, requests_per_minute,"
    " tokens_per_minute, deadline_max_ms, created_at, expires_at, revoked_at, last_used_at"
)
_RAISE = "BEGIN UPDATE revision SET number = number + 1; END"
_WATCHED = _COLUMNS.removesuffix(", last_used_at")
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS keys (
        key_id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
        models TEXT,
        routes TEXT,
        priority_min INTEGER NOT NULL,
        priority_max INTEGER NOT NULL,
        concurrency INTEGER,
        requests_per_minute INTEGER,
        tokens_per_minute INTEGER,
        deadline_max_ms INTEGER,
        created_at REAL NOT NULL,
        expires_at REAL,
        revoked_at REAL,
        last_used_at REAL
    )""",
    "CREATE UNIQUE INDEX IF NOT EXISTS one_live_key_of_a_name ON keys (name) WHERE revoked_at IS NULL",
    "CREATE TABLE IF NOT EXISTS revision (number INTEGER NOT NULL)",
    "INSERT INTO revision SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM revision)",
    f"CREATE TRIGGER IF NOT EXISTS key_made AFTER INSERT ON keys {_RAISE}",
    f"CREATE TRIGGER IF NOT EXISTS key_gone AFTER DELETE ON keys {_RAISE}",
    f"CREATE TRIGGER IF NOT EXISTS key_changed AFTER UPDATE OF {_WATCHED} ON keys {_RAISE}",
    f"PRAGMA user_version = {_VERSION}",
)


class KeyFileError(Exception):
    """The file of keys cannot be used; the message says which, why, and what to do."""


class KeyFileBusy(KeyFileError):
    """Another process is writing; trying again helps."""


def open_key_file(path: Path, *, timeout_s: float) -> sqlite3.Connection:
    """Opens an existing file; where this process may not write, for reading only. `timeout_s` is how long locks wait.

    Raises KeyFileError when it is absent, is no file of keys, or could be changed by other users.
    """
    check_mode(path)
    uri = f"{path.absolute().as_uri()}?mode=rw"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise explain(error, path) from None
    try:
        [[version]] = connection.execute("PRAGMA user_version").fetchall()
    except sqlite3.Error as error:
        connection.close()
        raise explain(error, path) from None
    if version > _VERSION:
        connection.close()
        raise KeyFileError(f"{path} was written by a newer version of tidegate.")
    return connection


def make_key_file(path: Path, *, timeout_s: float) -> sqlite3.Connection:
    """Opens the file for writing; makes it, for this user alone, where it is absent. Raises KeyFileError."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise KeyFileError(f"{path} cannot be written: {error.strerror}.") from None
    connection = open_key_file(path, timeout_s=timeout_s)
    try:
        connection.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        connection.close()
        raise explain(error, path) from None
    return connection


def check_mode(path: Path) -> None:
    """Raises KeyFileError when the file is absent, or when other users could write themselves a key."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(mode):
        raise KeyFileError(f"{path} is not a file.")
    if mode & 0o022:
        raise KeyFileError(f"{path} can be changed by other users; run: chmod 600 {path}")


def is_initialised(connection: sqlite3.Connection) -> bool:
    """Whether the file has its schema yet: it is made empty, and filled a moment later."""
    [[version]] = connection.execute("PRAGMA user_version").fetchall()
    return bool(version)


def read_records(connection: sqlite3.Connection, where: str = "1") -> list[KeyRecord]:
    """Returns keys in the order of their making. `where` is SQL of ours, never input. Raises KeyFileError."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM keys WHERE {where} ORDER BY created_at, key_id")
    try:
        return [_to_record(row) for row in rows]
    except msgspec.MsgspecError as error:
        raise KeyFileError(f"The file of keys holds a row that is none of ours: {error}.") from None


def write_record(connection: sqlite3.Connection, record: KeyRecord) -> None:
    """Adds a key. Raises sqlite3.IntegrityError when its name or digest is there already."""
    principal, quotas = record.principal, record.principal.quotas
    row = (
        principal.key_id,
        principal.name,
        record.digest,
        _to_json(principal.models),
        _to_json(principal.routes),
        principal.priority_min,
        principal.priority_max,
        quotas.concurrency,
        quotas.requests_per_minute,
        quotas.tokens_per_minute,
        principal.deadline_max_ms,
        record.created_at,
        record.expires_at,
        record.revoked_at,
        record.last_used_at,
    )
    connection.execute(f"INSERT INTO keys ({_COLUMNS}) VALUES ({', '.join('?' * len(row))})", row)


def explain(error: sqlite3.Error, path: Path) -> KeyFileError:
    """Returns what to tell of a failure of SQLite."""
    if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return KeyFileBusy(f"{path} is being written by another process; try again.")
    return KeyFileError(f"{path} cannot be used as a file of keys: {error}.")


def _to_json(names: frozenset[str] | None) -> str | None:
    return None if names is None else msgspec.json.encode(sorted(names)).decode()


def _to_names(text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(msgspec.json.decode(text, type=list[str]))


def _to_record(row: tuple[object, ...]) -> KeyRecord:
    fields = msgspec.convert(row, _Row)
    principal = Principal(
        key_id=fields.key_id,
        name=fields.name,
        models=_to_names(fields.models),
        routes=_to_names(fields.routes),
        priority_min=fields.priority_min,
        priority_max=fields.priority_max,
        quotas=Quotas(fields.concurrency, fields.requests_per_minute, fields.tokens_per_minute),
        deadline_max_ms=fields.deadline_max_ms,
    )
    return KeyRecord(
        principal, fields.digest, fields.created_at, fields.expires_at, fields.revoked_at, fields.last_used_at
    )


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """A row as the columns are listed."""

    key_id: str
    name: str
    digest: bytes
    models: str | None
    routes: str | None
    priority_min: int
    priority_max: int
    concurrency: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    deadline_max_ms: int | None
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    last_used_at: float | None
