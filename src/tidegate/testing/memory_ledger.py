"""MemoryLedger: the ledger as plain data, for tests of what uses one and as the model that stores are compared with."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tidegate.lifecycle.ledger import Entry, EntryEvent, EntryState, Finding, LedgerLimits, apply, judge, room_needed
from tidegate.lifecycle.ledger_port import (
    Claim,
    ClaimAnswer,
    Fresh,
    InFlight,
    LedgerFull,
    LedgerStatistics,
    LedgerUnavailable,
    Mismatch,
    Replay,
)


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """`owner` is None once the entry is settled, `settled_at` until then."""

    claim: Claim
    owner: str | None
    settled_at: float | None = None
    answer: bytes = b""

    @property
    def state(self) -> EntryState:
        return EntryState.PENDING if self.settled_at is None else EntryState.SETTLED


@dataclass(slots=True)
class MemoryStore:
    """What several ledgers share. `is_down` makes every call fail."""

    limits: LedgerLimits
    wall: Callable[[], float]
    entries: dict[bytes, StoredEntry] = field(default_factory=dict)
    live_owners: set[str] = field(default_factory=set)
    num_generations: int = 0
    is_down: bool = False


class MemoryLedger:
    """Implements `Ledger`, for the process `owner`."""

    def __init__(self, store: MemoryStore, owner: str = "one") -> None:
        self.store = store
        self._owner = owner
        self._num_evicted = 0
        store.live_owners.add(owner)

    async def claim(self, operation: bytes, fingerprint: bytes) -> ClaimAnswer:
        """See `Ledger.claim`."""
        store = self._reach()
        found = store.entries.get(operation)
        finding, event = judge(self._entry(found), fingerprint)
        if finding is Finding.IN_FLIGHT:
            return InFlight()
        if finding is Finding.MISMATCH:
            return Mismatch()
        if finding is Finding.REPLAY:
            assert found is not None
            return Replay(found.answer)
        if event is not None:
            self._drop(operation, event)
        self._make_room(1, 0)
        if len(store.entries) >= store.limits.max_entries:
            self._drop_dead()
        if len(store.entries) >= store.limits.max_entries:
            raise LedgerFull(len(store.entries))
        store.num_generations += 1
        claim = Claim(operation, fingerprint, str(store.num_generations))
        store.entries[operation] = StoredEntry(claim, self._owner)
        return Fresh(claim)

    async def record(self, claim: Claim, answer: bytes) -> bool:
        """See `Ledger.record`."""
        store = self._reach()
        if not self._is_pending(claim):
            return False
        self._make_room(0, len(answer))
        entry = store.entries[claim.operation]
        apply(entry.state, EntryEvent.RECORD)
        store.entries[claim.operation] = replace(entry, owner=None, settled_at=store.wall(), answer=answer)
        return True

    async def release(self, claim: Claim) -> None:
        """See `Ledger.release`."""
        if self._is_pending(claim):
            self._drop(claim.operation, EntryEvent.RELEASE)

    def statistics(self) -> LedgerStatistics:
        """See `Ledger.statistics`."""
        entries = self.store.entries.values()
        return LedgerStatistics(len(entries), sum(len(entry.answer) for entry in entries), self._num_evicted)

    async def aclose(self) -> None:
        """See `Ledger.aclose`."""
        self.store.live_owners.discard(self._owner)

    def _reach(self) -> MemoryStore:
        if self.store.is_down:
            raise LedgerUnavailable("the store is down")
        return self.store

    def _entry(self, found: StoredEntry | None) -> Entry | None:
        if found is None:
            return None
        if found.settled_at is None:
            is_over = found.owner not in self.store.live_owners
        else:
            is_over = found.settled_at + self.store.limits.retention_s <= self.store.wall()
        return Entry(found.state, found.claim.fingerprint, is_over)

    def _is_pending(self, claim: Claim) -> bool:
        found = self.store.entries.get(claim.operation)
        is_same = found is not None and found.claim.generation == claim.generation
        return is_same and found is not None and found.state is EntryState.PENDING

    def _drop_dead(self) -> None:
        for operation, entry in tuple(self.store.entries.items()):
            if entry.owner is not None and entry.owner not in self.store.live_owners:
                self._drop(operation, EntryEvent.LAPSE)

    def _drop(self, operation: bytes, event: EntryEvent) -> None:
        apply(self.store.entries[operation].state, event)
        del self.store.entries[operation]

    def _make_room(self, new_entries: int, new_bytes: int) -> None:
        while True:
            now = self.statistics()
            room = room_needed(
                self.store.limits,
                num_entries=now.num_entries,
                num_bytes=now.num_bytes,
                new_entries=new_entries,
                new_bytes=new_bytes,
            )
            settled = [(entry.settled_at, name) for name, entry in self.store.entries.items() if entry.settled_at]
            if room.is_enough or not settled:
                return
            self._drop(min(settled)[1], EntryEvent.EVICT)
            self._num_evicted += 1
