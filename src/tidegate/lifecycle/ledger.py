"""The ledger of operations: what one entry may become, and what a second request of the same name is told.

An operation is what one idempotency key of one API key names. Its entry is ABSENT, PENDING while a request runs, or
SETTLED with the answer that every later request of that name gets. Each claim has a generation, which no other claim
ever had: what an overtaken claim does later changes nothing.

Decides from the entry found, the fingerprint of the new request and two facts about it (has it expired, is its owner
alive). Does not know: time, files, sockets, what an answer is.
"""

from dataclasses import dataclass
from enum import Enum

from tidegate.errors import InternalError


class EntryState(Enum):
    ABSENT = "absent"
    """Nobody has claimed the operation, or what was known of it is forgotten."""
    PENDING = "pending"
    """A request for it runs."""
    SETTLED = "settled"
    """Its answer is recorded."""


class EntryEvent(Enum):
    CLAIM = "claim"
    """A request begins to carry it out."""
    RECORD = "record"
    """The request has its whole answer."""
    RELEASE = "release"
    """The request was refused, failed or was cancelled: a retry may run."""
    LAPSE = "lapse"
    """The process that ran it is gone."""
    EXPIRE = "expire"
    """The answer is older than the retention."""
    EVICT = "evict"
    """The answer is the oldest one, and room is needed."""


ENTRY: dict[EntryState, dict[EntryEvent, EntryState]] = {
    EntryState.ABSENT: {EntryEvent.CLAIM: EntryState.PENDING},
    EntryState.PENDING: {
        EntryEvent.RECORD: EntryState.SETTLED,
        EntryEvent.RELEASE: EntryState.ABSENT,
        EntryEvent.LAPSE: EntryState.ABSENT,
    },
    EntryState.SETTLED: {EntryEvent.EXPIRE: EntryState.ABSENT, EntryEvent.EVICT: EntryState.ABSENT},
}
"""A settled entry is never claimed or released: one operation has one answer for as long as it is remembered."""


def apply(state: EntryState, event: EntryEvent) -> EntryState:
    """Returns the state after `event`. Raises InternalError where the table has no row."""
    new = ENTRY[state].get(event)
    if new is None:
        raise InternalError(f"ledger event {event.name} is not legal in state {state.name}")
    return new


class Finding(Enum):
    """What a request that names an operation is told."""

    FRESH = "fresh"
    """It is the one that runs."""
    IN_FLIGHT = "in_flight"
    """Another one runs."""
    REPLAY = "replay"
    """There is an answer."""
    MISMATCH = "mismatch"
    """The name was used for another request."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a store has found. `is_over`: an owner that is gone, or an answer past its retention."""

    state: EntryState
    fingerprint: bytes
    is_over: bool = False


def judge(entry: Entry | None, fingerprint: bytes) -> tuple[Finding, EntryEvent | None]:
    """Returns what a claim is told, and the event that has to be applied to the old entry first, if any."""
    if entry is None or entry.state is EntryState.ABSENT:
        return Finding.FRESH, None
    is_pending = entry.state is EntryState.PENDING
    if entry.is_over:
        return Finding.FRESH, EntryEvent.LAPSE if is_pending else EntryEvent.EXPIRE
    if entry.fingerprint != fingerprint:
        return Finding.MISMATCH, None
    return (Finding.IN_FLIGHT if is_pending else Finding.REPLAY), None


@dataclass(frozen=True, slots=True)
class LedgerLimits:
    """`retention_s` counts from the record. `max_bytes` counts answers as stored, all together."""

    retention_s: int = 86_400
    max_entries: int = 100_000
    max_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class Room:
    """How much has to be forgotten before something new fits."""

    num_entries: int
    num_bytes: int

    @property
    def is_enough(self) -> bool:
        return self.num_entries <= 0 and self.num_bytes <= 0


def room_needed(limits: LedgerLimits, *, num_entries: int, num_bytes: int, new_entries: int, new_bytes: int) -> Room:
    """Returns what is over the bounds once the new things are in. Only settled entries may make room, oldest first."""
    return Room(num_entries + new_entries - limits.max_entries, num_bytes + new_bytes - limits.max_bytes)
