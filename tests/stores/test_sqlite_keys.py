"""The file of keys: what is in it, who may change it, and how soon a running server sees a change."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import InvalidApiKey
from tidegate.lifecycle.key_policy import KeyRecord
from tidegate.lifecycle.key_ring import KeyRing
from tidegate.lifecycle.key_text import KEY_ENTROPY_BYTES, digest_of, make_key
from tidegate.lifecycle.principal import Principal, Quotas
from tidegate.stores.key_file import KeyFileError
from tidegate.stores.live_keys import FLUSH_S, POLL_S, STALE_S, LiveKeys
from tidegate.stores.sqlite_keys import NameTaken, SqliteKeys

WALL = 1_750_000_000.0


def make_record(name: str, **fields: object) -> tuple[str, KeyRecord]:
    key_id, key = make_key(os.urandom(KEY_ENTROPY_BYTES))
    principal = replace(Principal(key_id, name), **fields)  # type: ignore[arg-type]
    return key, KeyRecord(principal, digest_of(key), WALL)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.db"


def add(path: Path, name: str = "one") -> tuple[str, str]:
    """Returns the new key and its id."""
    key, record = make_record(name)
    SqliteKeys(path).create(record)
    return key, record.principal.key_id


def change(path: Path, statement: str) -> None:
    """Changes the file as any other program would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


class Live:
    """Live keys whose time and threads the test moves."""

    def __init__(self, path: Path) -> None:
        self.faults: list[str] = []
        self.writes: list[Callable[[], None]] = []
        self.now = 100.0
        self.keys = LiveKeys(path, on_fault=self.faults.append, run_aside=self.writes.append)
        self.keys.load(self.now)

    def look(self, after_s: float = POLL_S) -> KeyRing:
        self.now += after_s
        return self.keys.look(self.now)


@pytest.fixture
def start(path: Path) -> Iterator[Callable[[], Live]]:
    """Starts what a server process does with the file; ended after the test."""
    with ExitStack() as ending:

        def begin() -> Live:
            live = Live(path)
            ending.callback(live.keys.close)
            return live

        yield begin


def knows(ring: KeyRing, key: str) -> bool:
    try:
        ring.identify(key, WALL)
    except InvalidApiKey:
        return False
    return True


def test_every_field_comes_back_and_nothing_of_the_key_is_in_the_file(path: Path) -> None:  # SEC-29
    key, full = make_record(
        "full",
        models=frozenset({"a", "b/c"}),
        routes=frozenset({"/v1/models/{id}"}),
        priority_min=-5,
        priority_max=7,
        quotas=Quotas(3, 1_000_000_000, 10**12),
        deadline_max_ms=1500,
    )
    full = replace(full, expires_at=WALL + 5.5)
    bare = replace(make_record("bare")[1], created_at=WALL + 1)
    store = SqliteKeys(path)
    assert store.create(full)
    assert not store.create(bare)
    assert store.list_keys() == [full, bare]
    stored = path.read_bytes()
    assert key.encode() not in stored
    assert key.rpartition("_")[2].encode() not in stored
    assert full.digest in stored


def test_the_file_is_for_this_user_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        add(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_name_belongs_to_one_key_until_it_is_revoked(path: Path) -> None:
    store = SqliteKeys(path)
    _, key_id = add(path, "same")
    with pytest.raises(NameTaken) as caught:
        add(path, "same")
    assert caught.value.key_id == key_id
    assert store.revoke(key_id, WALL + 1)
    assert not store.revoke(key_id, WALL + 2)
    assert not store.revoke("key_nobody", WALL)
    add(path, "same")
    assert {record.revoked_at for record in store.list_keys()} == {WALL + 1, None}


def test_keys_and_memories_of_revoked_ones_are_bounded(path: Path) -> None:
    store = SqliteKeys(path, max_keys=2)
    for number in range(6):
        _, record = make_record(f"n{number}")
        store.create(record)
        store.revoke(record.principal.key_id, WALL + number)
    assert len(store.list_keys()) == 3
    store.create(make_record("a")[1])
    store.create(make_record("b")[1])
    with pytest.raises(KeyFileError, match="the most it may"):
        store.create(make_record("c")[1])
    assert sorted(record.principal.name for record in store.list_keys()) == ["a", "b", "n4", "n5"]


def spoil_text(path: Path) -> None:
    path.write_text("this is no database, and longer than its header would be" * 20)
    path.chmod(0o600)


def spoil_mode(path: Path) -> None:
    add(path)
    path.chmod(0o620)


def spoil_version(path: Path) -> None:
    add(path)
    change(path, "PRAGMA user_version = 99")


def spoil_row(path: Path) -> None:
    add(path)
    change(path, "UPDATE keys SET models = '{'")


def make_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoil_text, "cannot be used"),
        (spoil_mode, "chmod 600"),
        (spoil_version, "newer version"),
        (spoil_row, "none of ours"),
        (make_folder, "not a file"),
    ],
)
def test_a_file_that_cannot_be_trusted_keeps_a_server_from_starting(
    start: Callable[[], Live], path: Path, spoil: Callable[[Path], None], words: str
) -> None:
    spoil(path)
    with pytest.raises(KeyFileError, match=words):
        start()
    with pytest.raises(KeyFileError, match=words):
        SqliteKeys(path).list_keys()


def test_the_first_key_closes_a_running_server_and_its_revocation_does_not_open_it(
    start: Callable[[], Live], path: Path
) -> None:
    live = start()
    assert not live.look().is_closed
    key, key_id = add(path)
    assert not live.look(POLL_S / 2).is_closed  # no query for each request
    assert live.look().is_closed
    assert knows(live.look(), key)
    SqliteKeys(path).revoke(key_id, WALL)
    assert live.look().is_closed
    assert not knows(live.look(), key)
    assert start().look().is_closed


def test_keys_are_read_again_only_when_one_has_changed(start: Callable[[], Live], path: Path) -> None:
    key, key_id = add(path)
    live, other = start(), start()
    ring = live.look()
    assert live.look() is ring
    SqliteKeys(path).write_last_used({key_id: WALL + 1})
    assert live.look() is ring
    add(path, "two")
    assert live.look() is not ring
    assert len(live.look().by_digest) == len(other.look().by_digest) == 2
    assert knows(other.look(), key)


def test_a_change_by_another_program_counts_too(start: Callable[[], Live], path: Path) -> None:
    key, _ = add(path)
    live = start()
    change(path, "DELETE FROM keys")
    assert not knows(live.look(), key)
    assert live.look().is_closed


def test_a_file_that_goes_away_leaves_the_server_closed(start: Callable[[], Live], path: Path) -> None:
    key, _ = add(path)
    live = start()
    path.unlink()
    ring = live.look()
    assert (ring.is_closed, knows(ring, key), live.faults) == (True, False, [])


def test_a_restored_file_is_read(start: Callable[[], Live], path: Path, tmp_path: Path) -> None:
    old, _ = add(path)
    copy = tmp_path / "copy.db"
    shutil.copy2(path, copy)
    new, _ = add(path, "two")
    live = start()
    os.replace(copy, path)
    ring = live.look()
    assert (knows(ring, old), knows(ring, new)) == (True, False)


def test_an_empty_file_holds_no_key_yet(start: Callable[[], Live], path: Path) -> None:
    path.touch(0o600)
    live = start()
    assert not live.look().is_closed
    assert SqliteKeys(path).list_keys() == []
    key, _ = add(path)
    assert knows(live.look(), key)


def test_keys_that_cannot_be_read_any_more_hold_for_a_while_and_then_nobody_gets_in(
    start: Callable[[], Live], path: Path
) -> None:
    key, _ = add(path)
    live = start()
    path.chmod(0o666)
    for _ in range(int(STALE_S / POLL_S) - 1):
        assert knows(live.look(), key)
    ring = live.look()
    assert (ring.is_closed, knows(ring, key)) == (True, False)
    assert len(live.faults) == 1
    path.chmod(0o600)
    assert knows(live.look(), key)
    path.chmod(0o666)
    live.look()
    assert len(live.faults) == 2


def test_looking_does_not_wait_for_a_writer(start: Callable[[], Live], path: Path) -> None:
    key, _ = add(path)
    live = start()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("UPDATE keys SET revoked_at = 1")
        assert knows(live.look(), key)
        assert live.faults == []
        writer.execute("COMMIT")
    assert not knows(live.look(), key)


def test_last_use_is_written_once_a_minute_and_at_the_end(start: Callable[[], Live], path: Path) -> None:
    _, key_id = add(path)
    live = start()

    def stored() -> list[float | None]:
        return [record.last_used_at for record in SqliteKeys(path).list_keys()]

    for number in range(5):
        live.keys.note_use(key_id, WALL + number)
        live.look()
    assert (live.writes, stored()) == ([], [None])
    live.look(FLUSH_S)
    live.look(FLUSH_S)
    [write] = live.writes
    write()
    assert stored() == [WALL + 4]
    live.keys.note_use(key_id, WALL + 9)
    live.keys.close()
    live.keys.close()
    assert stored() == [WALL + 9]
    SqliteKeys(path).write_last_used({key_id: WALL})  # from a process whose note is older
    assert stored() == [WALL + 9]


def test_a_use_that_cannot_be_written_harms_nobody(start: Callable[[], Live], path: Path) -> None:
    _, key_id = add(path)
    live = start()
    live.keys.note_use(key_id, WALL)
    path.unlink()
    live.keys.close()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(["create", "revoke", "use", "look", "replace"]), max_size=12))
def test_after_any_changes_a_look_sees_what_is_stored(acts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keys.db"
        store, live = SqliteKeys(path), Live(path)
        has_ever = False
        for number, act in enumerate(acts):
            living = [record for record in store.list_keys() if record.revoked_at is None]
            if act == "create":
                add(path, f"n{number}")
                has_ever = True
            elif act == "revoke" and living:
                store.revoke(living[-1].principal.key_id, WALL)
            elif act == "use" and living:
                live.keys.note_use(living[0].principal.key_id, WALL + number)
                live.look(FLUSH_S)
                for write in live.writes:
                    write()
            elif act == "replace" and path.exists():
                shutil.copy2(path, path.with_suffix(".copy"))
                os.replace(path.with_suffix(".copy"), path)
            elif act == "look":
                live.look()
            expected = {record.digest for record in store.list_keys() if record.revoked_at is None}
            ring = live.look()
            assert (set(ring.by_digest), ring.is_closed) == (expected, has_ever)
        assert live.faults == []
        live.keys.close()
