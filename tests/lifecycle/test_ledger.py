"""The ledger's machine: its table, what a claim is told, and what has to make room."""

from itertools import product

import pytest

from tidegate.errors import InternalError
from tidegate.lifecycle.ledger import (
    ENTRY,
    Entry,
    EntryEvent,
    EntryState,
    Finding,
    LedgerLimits,
    apply,
    judge,
    room_needed,
)

MINE, OTHER = b"m" * 32, b"o" * 32
PENDING, SETTLED = EntryState.PENDING, EntryState.SETTLED


def test_the_table_is_this() -> None:
    rows = {(old.value, event.value, new.value) for old, row in ENTRY.items() for event, new in row.items()}
    assert rows == {
        ("absent", "claim", "pending"),
        ("pending", "record", "settled"),
        ("pending", "release", "absent"),
        ("pending", "lapse", "absent"),
        ("settled", "expire", "absent"),
        ("settled", "evict", "absent"),
    }


@pytest.mark.parametrize(("state", "event"), list(product(EntryState, EntryEvent)))
def test_what_is_not_in_the_table_is_our_fault(state: EntryState, event: EntryEvent) -> None:
    if event in ENTRY[state]:
        assert apply(state, event) is ENTRY[state][event]
    else:
        with pytest.raises(InternalError, match=rf"{event.name} .* {state.name}"):
            apply(state, event)


FINDINGS = [
    (None, Finding.FRESH, None),
    (Entry(EntryState.ABSENT, b""), Finding.FRESH, None),
    (Entry(PENDING, MINE), Finding.IN_FLIGHT, None),
    (Entry(PENDING, OTHER), Finding.MISMATCH, None),
    (Entry(SETTLED, MINE), Finding.REPLAY, None),
    (Entry(SETTLED, OTHER), Finding.MISMATCH, None),
    (Entry(PENDING, MINE, is_over=True), Finding.FRESH, EntryEvent.LAPSE),
    (Entry(PENDING, OTHER, is_over=True), Finding.FRESH, EntryEvent.LAPSE),
    (Entry(SETTLED, MINE, is_over=True), Finding.FRESH, EntryEvent.EXPIRE),
    (Entry(SETTLED, OTHER, is_over=True), Finding.FRESH, EntryEvent.EXPIRE),
]


@pytest.mark.parametrize(("entry", "finding", "event"), FINDINGS)
def test_a_claim_is_judged_by_the_entry_found(entry: Entry | None, finding: Finding, event: EntryEvent | None) -> None:
    assert judge(entry, MINE) == (finding, event)
    if entry is not None and event is not None:
        assert apply(entry.state, event) is EntryState.ABSENT


ROOM = [
    ((9, 90), (1, 10), True),
    ((10, 90), (1, 0), False),
    ((9, 91), (0, 10), False),
    ((0, 0), (1, 100), True),
]


@pytest.mark.parametrize(("now", "new", "is_enough"), ROOM)
def test_room_is_counted_in_entries_and_bytes(now: tuple[int, int], new: tuple[int, int], is_enough: bool) -> None:
    room = room_needed(
        LedgerLimits(1, max_entries=10, max_bytes=100),
        num_entries=now[0],
        num_bytes=now[1],
        new_entries=new[0],
        new_bytes=new[1],
    )
    assert room.is_enough is is_enough
