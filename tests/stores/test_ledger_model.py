"""Random histories: the ledger in SQLite says what the one in memory says, whatever happens in whatever order."""

import asyncio
import os
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.lifecycle.ledger_port import ClaimAnswer, Fresh, LedgerFull
from tidegate.stores.ledger_file import LedgerFile
from tidegate.testing.check_ledger import name
from tidegate.testing.memory_ledger import MemoryLedger, MemoryStore

OPERATIONS = st.sampled_from(["a", "b", "c", "d", "e"])
BODIES = st.sampled_from(["one", "two"])
LIMITS = LedgerLimits(retention_s=10, max_entries=3, max_bytes=100)


class TwoLedgers(RuleBasedStateMachine):
    """Invariant: equal answers, equal accounts. Two processes share each store; either may die and come again."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "answers.sqlite3"
        self._now_s = 1000.0
        self._store = MemoryStore(LIMITS, lambda: self._now_s)
        self._num_started = 0
        self._files: dict[int, LedgerFile] = {}
        self._models: dict[int, MemoryLedger] = {}
        self._claims: list[tuple[int, Fresh, Fresh]] = []

    @initialize()
    def begin(self) -> None:
        for process in (0, 1):
            self._start(process)

    def _start(self, process: int) -> None:
        self._num_started += 1
        owner = str(self._num_started)
        self._files[process] = LedgerFile(self._path, LIMITS, lambda: self._now_s, owner)
        self._models[process] = MemoryLedger(self._store, owner)

    @rule(process=st.integers(0, 1), operation=OPERATIONS, body=BODIES)
    def claim(self, process: int, operation: str, body: str) -> None:
        expected: ClaimAnswer | str
        found: ClaimAnswer | str
        try:
            expected = asyncio.run(self._models[process].claim(name(operation), name(body)))
        except LedgerFull as full:
            expected = str(full)
        try:
            found = self._files[process].claim(name(operation), name(body))
        except LedgerFull as full:
            found = str(full)
        if isinstance(expected, Fresh):
            assert isinstance(found, Fresh)
            self._claims.append((process, expected, found))
        else:
            assert found == expected
        self._tick()

    @rule(which=st.integers(0, 9), size=st.integers(0, 60))
    def record(self, which: int, size: int) -> None:
        if self._claims:
            process, model, real = self._claims.pop(which % len(self._claims))
            expected = asyncio.run(self._models[process].record(model.claim, bytes(size)))
            assert self._files[process].record(real.claim, bytes(size)) == expected
            self._check_accounts()
            self._tick()

    @rule(which=st.integers(0, 9))
    def release(self, which: int) -> None:
        if self._claims:
            process, model, real = self._claims.pop(which % len(self._claims))
            asyncio.run(self._models[process].release(model.claim))
            self._files[process].release(real.claim.generation)
            self._check_accounts()

    @rule(process=st.integers(0, 1))
    def die(self, process: int) -> None:
        file = self._files[process]
        file._db.close()
        descriptor = file._owner._descriptor
        assert descriptor is not None
        os.close(descriptor)
        asyncio.run(self._models[process].aclose())
        self._claims = [claim for claim in self._claims if claim[0] != process]
        self._start(process)

    @rule(duration_s=st.sampled_from([1.0, 5.0, 11.0]))
    def wait(self, duration_s: float) -> None:
        self._now_s += duration_s

    def _tick(self) -> None:
        self._now_s += 0.001  # no two records at the same moment: which is older would be chance

    def _check_accounts(self) -> None:
        now = self._models[0].statistics()
        seen = self._files[0]._db.execute("SELECT num_entries, num_bytes FROM totals").fetchone()
        assert seen == (now.num_entries, now.num_bytes)
        query = "SELECT count(*), coalesce(sum(length(answer)), 0) FROM entries"
        assert self._files[0]._db.execute(query).fetchone() == seen

    def teardown(self) -> None:
        for file in self._files.values():
            file.close()
        self._folder.cleanup()


TestTwoLedgers = TwoLedgers.TestCase
TestTwoLedgers.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
