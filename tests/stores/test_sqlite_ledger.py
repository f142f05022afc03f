"""The ledger's file: who may read it, what it refuses, what dead processes and a busy disk leave behind."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.lifecycle.ledger_port import Fresh, InFlight, LedgerBroken, LedgerUnavailable, Replay
from tidegate.stores.ledger_file import BATCH_ENTRIES, LedgerFile
from tidegate.stores.owner_lock import OwnerLock, is_owner_alive
from tidegate.stores.sqlite_ledger import SqliteLedger
from tidegate.testing.check_ledger import ANSWER, BODY, claim_fresh, name, record

LIMITS = LedgerLimits(retention_s=100)
BENCH = Path(__file__).parents[2] / "bench" / "ledger.py"


def open_file(folder: Path, limits: LedgerLimits = LIMITS, owner: str = "me", now_s: float = 1000.0) -> LedgerFile:
    return LedgerFile(folder / "state" / "answers.sqlite3", limits, lambda: now_s, owner)


def fill(file: LedgerFile, num_entries: int) -> None:
    for i in range(num_entries):
        found = file.claim(name(str(i)), BODY)
        assert isinstance(found, Fresh)
        assert file.record(found.claim, b"answer")


def with_ledger(folder: Path, test: Callable[[SqliteLedger, LedgerFile], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        file = open_file(folder)
        ledger = SqliteLedger(file, upkeep_s=0.01)
        try:
            await test(ledger, file)
        finally:
            await ledger.aclose()

    asyncio.run(main())


def test_nobody_else_can_read_what_is_recorded(tmp_path: Path) -> None:
    file = open_file(tmp_path)
    fill(file, 1)
    folder = tmp_path / "state"
    names = sorted(path.name for path in folder.iterdir())
    endings = ["", "-shm", "-wal", ".owner-me"]
    assert names == sorted("answers.sqlite3" + ending for ending in endings)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    file.close()
    file.close()
    assert [path.name for path in folder.iterdir()] == ["answers.sqlite3"]


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "answers.sqlite3"
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs(x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(LedgerBroken, match="another program"):
        open_file(tmp_path)
    assert path.read_bytes() == before


def test_a_file_of_another_format_says_what_to_do(tmp_path: Path) -> None:
    open_file(tmp_path).close()
    db = sqlite3.connect(tmp_path / "state" / "answers.sqlite3")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(LedgerBroken, match=r"format 99.*move the file away"):
        open_file(tmp_path)


def test_a_damaged_page_is_found_at_the_start(tmp_path: Path) -> None:
    file = open_file(tmp_path)
    fill(file, 200)
    file.close()
    path = tmp_path / "state" / "answers.sqlite3"
    content = bytearray(path.read_bytes())
    content[8192:40960] = b"\x5a" * 32768
    path.write_bytes(content)
    with pytest.raises(LedgerBroken, match=r"(?s)damaged.*move it away"):
        open_file(tmp_path)


def test_a_place_that_cannot_be_written_says_which_settings_help(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"a file, not a folder")
    with pytest.raises(LedgerBroken, match=r"server\.state_dir.*idempotency\.store"):
        open_file(tmp_path)


def test_several_processes_may_open_it_at_once(tmp_path: Path) -> None:
    program = "import sys; from pathlib import Path; from tidegate.lifecycle.ledger import LedgerLimits\n"
    program += "from tidegate.stores.ledger_file import LedgerFile\n"
    program += "LedgerFile(Path(sys.argv[1]), LedgerLimits(), lambda: 0.0, sys.argv[2]).close()"
    path = tmp_path / "state" / "answers.sqlite3"
    started = [subprocess.Popen([sys.executable, "-c", program, str(path), str(i)]) for i in range(4)]
    assert [process.wait(60) for process in started] == [0] * 4


HOLDER = """
import sys, time
from pathlib import Path
from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.stores.ledger_file import LedgerFile
file = LedgerFile(Path(sys.argv[1]), LedgerLimits(), time.time, "holder")
for i in range(3): file.claim(bytes([i]) * 32, b"f" * 32)
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.process
def test_sigkill_frees_what_a_process_held(tmp_path: Path) -> None:  # IDEM-4
    file = open_file(tmp_path)
    path = tmp_path / "state" / "answers.sqlite3"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    assert file.claim(bytes(32), b"f" * 32) == InFlight()
    assert is_owner_alive(path, "holder")
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert isinstance(file.claim(bytes(32), b"f" * 32), Fresh)
    file.tidy()
    assert file.statistics().num_entries == 1
    file.close()
    assert [left.name for left in path.parent.iterdir()] == [path.name]


def test_what_dead_owners_left_is_cleared_away(tmp_path: Path) -> None:
    ledger = tmp_path / "a.sqlite3"
    (tmp_path / "a.sqlite3.owner-dead").touch()
    lock = OwnerLock(ledger, "mine")
    lock.clear_dead()
    assert [path.name for path in tmp_path.iterdir()] == ["a.sqlite3.owner-mine"]
    assert is_owner_alive(ledger, "mine")
    lock.release()
    assert not is_owner_alive(ledger, "mine")


def test_what_has_expired_goes_in_small_batches(tmp_path: Path) -> None:  # IDEM-9
    file = open_file(tmp_path)
    fill(file, BATCH_ENTRIES + 10)
    file.close()
    later = open_file(tmp_path, now_s=1101.0)
    assert later.tidy()
    assert later.statistics().num_entries == 10
    assert not later.tidy()
    assert (later.statistics().num_entries, later.statistics().num_bytes) == (0, 0)
    later.close()


def test_smaller_bounds_are_reached_after_a_restart(tmp_path: Path) -> None:  # IDEM-9
    file = open_file(tmp_path)
    fill(file, BATCH_ENTRIES * 2)
    file.close()
    smaller = open_file(tmp_path, LedgerLimits(retention_s=100, max_entries=5))
    assert isinstance(smaller.claim(name("new"), BODY), Fresh)
    while smaller.tidy():
        pass
    assert smaller.statistics().num_entries == 5
    assert smaller.claim(name(str(BATCH_ENTRIES * 2 - 1)), BODY) == Replay(b"answer")
    smaller.close()


def test_a_busy_file_delays_nobody_else_and_then_is_unavailable(tmp_path: Path) -> None:
    async def test(ledger: SqliteLedger, file: LedgerFile) -> None:
        file._db.execute("PRAGMA busy_timeout = 200")
        claim = await claim_fresh(ledger, "released later")
        kept = await claim_fresh(ledger, "recorded too late")
        other = sqlite3.connect(tmp_path / "state" / "answers.sqlite3", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        asking = asyncio.create_task(ledger.claim(name("a"), BODY))
        turns = 0
        while not asking.done():
            turns += 1
            await asyncio.sleep(0)
        with pytest.raises(LedgerUnavailable, match="locked"):
            asking.result()
        assert turns > 10, "the event loop went on meanwhile"
        await ledger.release(claim)
        with pytest.raises(LedgerUnavailable):
            await ledger.record(kept, ANSWER)
        other.execute("ROLLBACK")
        other.close()
        ledger.start()
        while file.statistics().num_entries:
            await asyncio.sleep(0.01)
        await record(ledger, "recorded too late")
        await record(ledger, "released later")

    with_ledger(tmp_path, test)


def test_a_closed_ledger_answers_that_it_is_unavailable(tmp_path: Path) -> None:
    async def test(ledger: SqliteLedger, file: LedgerFile) -> None:
        claim = await claim_fresh(ledger, "a")
        await ledger.aclose()
        with pytest.raises(LedgerUnavailable, match="closed"):
            await ledger.claim(name("b"), BODY)
        await ledger.release(claim)

    with_ledger(tmp_path, test)


def test_the_upkeep_makes_records_safe_from_a_power_loss(tmp_path: Path) -> None:
    async def test(ledger: SqliteLedger, file: LedgerFile) -> None:
        await record(ledger, "a", ANSWER)
        path = tmp_path / "state" / "answers.sqlite3"
        assert ANSWER[:256] not in path.read_bytes()
        ledger.start()
        async with asyncio.timeout(30):
            while ANSWER[:256] not in path.read_bytes():
                await asyncio.sleep(0.01)

    with_ledger(tmp_path, test)


@pytest.mark.process
def test_many_keys_leave_memory_flat() -> None:  # IDEM-9
    done = subprocess.run(
        [sys.executable, str(BENCH), "--only", "memory", "--keys", "5000", "--answer-bytes", "500"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    grown = int(done.stdout.rpartition("grown by ")[2].split()[0])
    assert grown < 1024 * 1024, "3,000 keys of 500 bytes stay out of memory"
