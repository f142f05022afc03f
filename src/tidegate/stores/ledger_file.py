"""LedgerFile: the ledger in one SQLite file, shared by the server processes of one host. Synchronous.

Write-ahead log with `synchronous=NORMAL`: a commit is in the kernel's hands when it returns, so a SIGKILL of any
process loses nothing and tears nothing. A power loss may lose what was committed since the last checkpoint
(`sync`), never the file.

An entry is pending while `settled_at` is null. What it may become is the table of `lifecycle/ledger.py`; every change
is one transaction.
"""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from tidegate.lifecycle.ledger import Entry, EntryState, Finding, LedgerLimits, judge, room_needed
from tidegate.lifecycle.ledger_port import (
    Claim,
    ClaimAnswer,
    Fresh,
    InFlight,
    LedgerBroken,
    LedgerFull,
    LedgerStatistics,
    Mismatch,
    Replay,
)
from tidegate.stores.owner_lock import OwnerLock

BUSY_TIMEOUT_S = 5.0
BATCH_ENTRIES = 256
"""Entries that one transaction forgets when nobody waits for the room."""
CHECKED_BYTES = 64 * 1024 * 1024
"""Files up to this size are checked as a whole when they are opened."""
_WAL_BYTES = 64 * 1024 * 1024
_APPLICATION_ID = 0x54474C31
_VERSION = 1
_SCHEMA = """
CREATE TABLE entries(
    generation INTEGER PRIMARY KEY AUTOINCREMENT,
    operation BLOB NOT NULL UNIQUE,
    fingerprint BLOB NOT NULL,
    owner TEXT,
    settled_at REAL,
    size INTEGER NOT NULL DEFAULT 0,
    answer BLOB
);
CREATE INDEX entries_settled ON entries(settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX entries_pending ON entries(owner) WHERE settled_at IS NULL;
CREATE TABLE totals(num_entries INTEGER NOT NULL, num_bytes INTEGER NOT NULL);
INSERT INTO totals VALUES(0, 0);
CREATE TRIGGER entries_insert AFTER INSERT ON entries BEGIN
    UPDATE totals SET num_entries = num_entries + 1, num_bytes = num_bytes + NEW.size;
END;
CREATE TRIGGER entries_update AFTER UPDATE OF size ON entries BEGIN
    UPDATE totals SET num_bytes = num_bytes + NEW.size - OLD.size;
END;
CREATE TRIGGER entries_delete AFTER DELETE ON entries BEGIN
    UPDATE totals SET num_entries = num_entries - 1, num_bytes = num_bytes - OLD.size;
END;
"""


class LedgerFile:
    """One process's connection. Used by one thread at a time. `wall` gives seconds since the epoch.

    `owner_name` is unique for ever. Opening raises LedgerBroken; all other methods raise sqlite3.Error.
    """

    def __init__(self, path: Path, limits: LedgerLimits, wall: Callable[[], float], owner_name: str) -> None:
        self._limits = limits
        self._wall = wall
        self._num_evicted = 0
        self._totals = (0, 0)
        try:
            self._db = _open(path)
            self._owner = OwnerLock(path, owner_name)
        except OSError as error:
            raise LedgerBroken(_unusable_folder(path, error)) from error
        except sqlite3.Error as error:
            raise LedgerBroken(_damaged(path, error)) from error
        self._owner.clear_dead()
        self._read_totals()

    def claim(self, operation: bytes, fingerprint: bytes) -> ClaimAnswer:
        """See `Ledger.claim`."""
        with self._writing():
            found = self._db.execute(
                "SELECT generation, fingerprint, owner, settled_at FROM entries WHERE operation = ?", (operation,)
            ).fetchone()
            finding, event = judge(self._entry(found), fingerprint)
            if finding is Finding.IN_FLIGHT:
                return InFlight()
            if finding is Finding.MISMATCH:
                return Mismatch()
            if finding is Finding.REPLAY:
                query = "SELECT answer FROM entries WHERE generation = ?"
                return Replay(self._db.execute(query, (found[0],)).fetchone()[0])
            if event is not None:
                self._db.execute("DELETE FROM entries WHERE generation = ?", (found[0],))
            self._make_room_for_entry()
            made = self._db.execute(
                "INSERT INTO entries(operation, fingerprint, owner) VALUES(?, ?, ?)",
                (operation, fingerprint, self._owner.name),
            )
            self._read_totals()
        return Fresh(Claim(operation, fingerprint, str(made.lastrowid)))

    def record(self, claim: Claim, answer: bytes) -> bool:
        """See `Ledger.record`. `answer` is no longer than `max_bytes`."""
        with self._writing():
            self._make_room_for_bytes(len(answer))
            done = self._db.execute(
                "UPDATE entries SET owner = NULL, settled_at = ?, size = ?, answer = ?"
                " WHERE generation = ? AND settled_at IS NULL",
                (self._wall(), len(answer), answer, int(claim.generation)),
            )
            self._read_totals()
        return done.rowcount == 1

    def release(self, generation: str) -> None:
        """Gives up a claim that is still pending."""
        with self._writing():
            self._db.execute("DELETE FROM entries WHERE generation = ? AND settled_at IS NULL", (int(generation),))
            self._read_totals()

    def tidy(self) -> bool:
        """Forgets one batch of what has expired, is too much, or belongs to the dead. Returns whether more is left."""
        num_lapsed = self._lapse_dead()
        with self._writing():
            before = self._wall() - self._limits.retention_s
            num_expired = self._db.execute(
                "DELETE FROM entries WHERE generation IN (SELECT generation FROM entries"
                " WHERE settled_at <= ? ORDER BY settled_at LIMIT ?)",
                (before, BATCH_ENTRIES),
            ).rowcount
            num_evicted = self._evict(0, 0, BATCH_ENTRIES)
            self._read_totals()
        return max(num_lapsed, num_expired, num_evicted) >= BATCH_ENTRIES

    def sync(self) -> None:
        """Makes what was committed survive a power loss, as far as nobody else is writing at this moment."""
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def statistics(self) -> LedgerStatistics:
        """Returns what this process last saw; asks nobody, from any thread."""
        num_entries, num_bytes = self._totals
        return LedgerStatistics(num_entries, num_bytes, self._num_evicted)

    def close(self) -> None:
        """Gives up the claims of this process. Idempotent."""
        with contextlib.suppress(sqlite3.Error), self._writing():
            self._db.execute("DELETE FROM entries WHERE owner = ?", (self._owner.name,))
        self._db.close()
        self._owner.release()

    def _entry(self, found: tuple[int, bytes, str | None, float | None] | None) -> Entry | None:
        if found is None:
            return None
        _generation, fingerprint, owner, settled_at = found
        if settled_at is None:
            return Entry(EntryState.PENDING, fingerprint, is_over=not self._owner.is_alive(owner or ""))
        return Entry(EntryState.SETTLED, fingerprint, is_over=settled_at + self._limits.retention_s <= self._wall())

    def _make_room_for_entry(self) -> None:
        if self._excess(1, 0)[0] <= 0:
            return
        if not self._evict(1, 0, BATCH_ENTRIES) and not self._delete_dead():
            raise LedgerFull(self._totals[0])

    def _make_room_for_bytes(self, num_bytes: int) -> None:
        while self._excess(0, num_bytes)[1] > 0 and self._evict(0, num_bytes, BATCH_ENTRIES):
            pass

    def _excess(self, new_entries: int, new_bytes: int) -> tuple[int, int]:
        self._read_totals()
        num_entries, num_bytes = self._totals
        room = room_needed(
            self._limits, num_entries=num_entries, num_bytes=num_bytes, new_entries=new_entries, new_bytes=new_bytes
        )
        return room.num_entries, room.num_bytes

    def _evict(self, new_entries: int, new_bytes: int, max_entries: int) -> int:
        """Forgets the oldest answers until the new things fit, at most `max_entries`. Returns how many."""
        over_entries, over_bytes = self._excess(new_entries, new_bytes)
        if over_entries <= 0 and over_bytes <= 0:
            return 0
        oldest = self._db.execute(
            "SELECT generation, size FROM entries WHERE settled_at IS NOT NULL ORDER BY settled_at, generation LIMIT ?",
            (max_entries,),
        ).fetchall()
        chosen = []
        for generation, size in oldest:
            if over_entries <= 0 and over_bytes <= 0:
                break
            chosen.append((generation,))
            over_entries, over_bytes = over_entries - 1, over_bytes - size
        self._db.executemany("DELETE FROM entries WHERE generation = ?", chosen)
        self._num_evicted += len(chosen)
        return len(chosen)

    def _lapse_dead(self) -> int:
        with self._writing():
            return self._delete_dead()

    def _delete_dead(self) -> int:
        """Forgets what dead processes left pending."""
        owners = self._db.execute("SELECT DISTINCT owner FROM entries WHERE settled_at IS NULL").fetchall()
        num_deleted = 0
        for (owner,) in owners:
            if not self._owner.is_alive(owner):
                query = "DELETE FROM entries WHERE settled_at IS NULL AND owner = ?"
                num_deleted += self._db.execute(query, (owner,)).rowcount
        return num_deleted

    def _read_totals(self) -> None:
        self._totals = self._db.execute("SELECT num_entries, num_bytes FROM totals").fetchone()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, alone among all processes."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._commit()
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _commit(self) -> None:
        self._db.execute("COMMIT")


def _open(path: Path) -> sqlite3.Connection:
    """Opens or creates the file. One process at a time; raises OSError, sqlite3.Error, LedgerBroken."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        # Never opened and closed beside SQLite: that would drop the locks of other connections of this process.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
        db = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        try:
            _set_up(db, path)
        except BaseException:
            db.close()
            raise
        return db
    finally:
        os.close(folder)


def _set_up(db: sqlite3.Connection, path: Path) -> None:
    application_id, version = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    is_new = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] and application_id == 0
    if not is_new and application_id != _APPLICATION_ID:
        raise LedgerBroken(f"{path} is a database of another program; set idempotency.file to another path.")
    if not is_new and version != _VERSION:
        raise LedgerBroken(
            f"{path} has format {version}, this version of tidegate writes {_VERSION}: move the file away and start"
            " again. Requests answered before will not be recognised."
        )
    if db.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        raise LedgerBroken(
            f"{path} is on a file system without shared memory maps; set idempotency.file to a local one."
        )
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    if is_new:
        db.executescript(
            f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {_APPLICATION_ID};"
            f" PRAGMA user_version = {_VERSION}; COMMIT;"
        )
    elif path.stat().st_size <= CHECKED_BYTES:
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(str(verdict))


def _damaged(path: Path, error: sqlite3.Error) -> str:
    return (
        f"{path} is damaged ({error}): move it away, with the files beside it whose names begin the same, and start"
        " again. Requests answered before will not be recognised."
    )


def _unusable_folder(path: Path, error: OSError) -> str:
    return (
        f"cannot keep recorded answers in {path} ({error.strerror or error}): set idempotency.file or server.state_dir"
        ' to a place that can be written, or idempotency.store = "off".'
    )
