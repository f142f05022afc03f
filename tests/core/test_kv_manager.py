"""Memory: accounting, moves and the laws that hold them together."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from tidegate.core.kv import integrity
from tidegate.core.kv.block_pool import BlockCounts, BlockPool
from tidegate.core.kv.integrity import BlockTable
from tidegate.core.kv.manager import KvManager, KvShape, KvSource
from tidegate.core.plan import KvDrop, KvShare, KvTruncate
from tidegate.errors import InternalError

TOKENS = bytes(range(4, 204))
"""Packed tokens of sequences that begin alike."""


def _manager(num_blocks: int = 8, max_sequences: int = 4, **shape: bool) -> KvManager:
    return KvManager(KvShape(num_blocks, 4, max_sequences, max_sequences, **shape))


def _counts(kv: KvManager) -> tuple[int, int, int]:
    counts = kv.statistics()
    return counts.num_free, counts.num_cached, counts.num_used


def _like(start: int, end: int) -> bytes:
    return TOKENS[start * 4 : end * 4]


def _other(start: int, end: int) -> bytes:
    return bytes(byte ^ 255 for byte in _like(start, end))


def test_a_sequence_takes_the_blocks_that_its_length_needs_and_gives_them_back() -> None:
    kv = _manager()
    assert kv.open(1, 9) == 0
    assert _counts(kv) == (5, 0, 3)
    assert kv.grow(1, 12)
    assert _counts(kv) == (5, 0, 3)
    assert kv.grow(1, 13)
    assert _counts(kv) == (4, 0, 4)
    kv.close(1, 0, _like)
    assert _counts(kv) == (8, 0, 0)
    assert kv.take_moves() == [KvDrop(0)]
    assert kv.take_moves() == []


def test_sharing_takes_references_for_full_blocks_and_a_fresh_one_for_the_rest() -> None:
    kv = _manager()
    kv.open(1, 10)
    assert kv.fits(10, KvSource(0, 10))
    assert kv.open(2, 10, source=KvSource(0, 10)) == 1
    assert _counts(kv) == (4, 0, 4)
    kv.close(1, 0, _like)
    assert _counts(kv) == (5, 0, 3)
    assert kv.take_moves() == [KvShare(0, 1, 10), KvDrop(0)]
    kv.check_integrity({2: 10})


def test_a_whole_number_of_blocks_is_shared_for_nothing() -> None:
    kv = _manager(num_blocks=2)
    kv.open(1, 8)
    assert kv.fits(8, KvSource(0, 8))
    assert not kv.fits(9, KvSource(0, 8))
    kv.open(2, 8, source=KvSource(0, 8))
    assert _counts(kv) == (0, 0, 2)


def test_growing_without_enough_blocks_changes_nothing() -> None:
    kv = _manager(num_blocks=2)
    kv.open(1, 4)
    kv.open(2, 4)
    assert not kv.grow(1, 5)
    kv.check_integrity({1: 4, 2: 4})
    kv.close(2, 0, _like)
    assert kv.grow(1, 5)


def test_a_shared_block_that_was_cut_is_replaced_before_it_is_written() -> None:
    kv = _manager(num_blocks=3)
    kv.open(1, 8)
    kv.open(2, 8, source=KvSource(0, 8))
    kv.truncate(2, 7)
    assert kv.grow(2, 8)
    assert _counts(kv) == (0, 0, 3)
    kv.truncate(2, 7)
    kv.open(3, 8, source=KvSource(0, 8))
    kv.truncate(3, 7)
    assert not kv.grow(3, 8), "the pool is out of blocks for a third copy"
    assert kv.take_moves()[1] == KvTruncate(1, 7)


def test_the_least_free_id_is_given_out_while_a_row_is_free() -> None:
    kv = _manager()
    assert [kv.open(key, 1) for key in range(4)] == [0, 1, 2, 3]
    assert not kv.fits(1)
    kv.close(2, 0, _like)
    kv.close(1, 0, _like)
    assert kv.open(9, 1) == 1


def test_reserved_blocks_stay_free() -> None:
    kv = _manager(num_blocks=3)
    assert kv.fits(8, num_reserved_blocks=1)
    assert not kv.fits(9, num_reserved_blocks=1)


def test_a_closed_sequence_leaves_what_it_computed_and_one_that_begins_so_takes_over_its_id() -> None:
    kv = _manager()
    kv.open(1, 11)
    kv.fill(1, 10, _like)
    kv.close(1, 10, _like)
    assert (_counts(kv), kv.take_moves()) == ((5, 3, 0), [KvTruncate(0, 10)])
    assert kv.find(b"", _like(0, 3)) is None, "one whole block at least"
    assert kv.find(b"", _like(0, 7)) == KvSource(0, 7), "and what goes on like it"
    assert kv.find(b"", _other(0, 8)) is None
    assert kv.find(b"salt", _like(0, 8)) is None
    source = kv.find(b"", _like(0, 12))
    assert source == KvSource(0, 10), "its last tokens too, which fill no block"
    assert kv.open(2, 12, source=source) == 0
    assert (_counts(kv), kv.take_moves()) == ((5, 0, 3), [])
    kv.check_integrity({2: 10})


def test_who_goes_on_otherwise_inside_the_tail_of_a_cached_sequence_takes_over_its_id_too() -> None:
    kv = _manager()
    kv.open(1, 11)
    kv.close(1, 11, _like)
    source = kv.find(b"", _like(0, 9) + _other(9, 12))
    assert source == KvSource(0, 9)
    assert kv.open(2, 12, source=source) == 0
    assert (_counts(kv), kv.take_moves()) == ((5, 0, 3), [KvTruncate(0, 9)])
    kv.check_integrity({2: 9})


def test_a_tail_goes_with_the_first_blocks_that_are_evicted() -> None:
    kv = _manager(num_blocks=12)
    kv.open(1, 47)
    kv.close(1, 47, _like)
    assert _counts(kv) == (0, 12, 0)
    kv.open(2, 4, salt=b"other")
    assert kv.take_moves() == [KvTruncate(0, 12)]
    assert kv.find(b"", _like(0, 50)) == KvSource(0, 12)
    kv.check_integrity({2: 4})


def test_less_than_a_block_is_not_kept() -> None:
    kv = _manager()
    kv.open(1, 3)
    kv.close(1, 3, _like)
    assert (_counts(kv), kv.take_moves()) == ((8, 0, 0), [KvDrop(0)])


def test_who_parts_from_a_cached_sequence_shares_with_it_and_both_stay() -> None:
    kv = _manager()
    kv.open(1, 8)
    kv.fill(1, 8, _like)
    kv.close(1, 0, _like)
    assert kv.open(2, 8, source=KvSource(0, 4)) == 1
    assert kv.take_moves() == [KvShare(0, 1, 4)]
    kv.fill(2, 8, _other)
    kv.close(2, 0, _like)
    assert (_counts(kv), kv.take_moves()) == ((5, 3, 0), [])
    kv.check_integrity({})


def test_what_a_running_sequence_holds_is_not_kept_twice() -> None:
    kv = _manager()
    for key in (1, 2):
        kv.open(key, 8)
        kv.fill(key, 8, _like)
    assert _counts(kv) == (4, 0, 4)
    kv.close(1, 0, _like)
    assert (_counts(kv), kv.take_moves()) == ((6, 0, 2), [KvDrop(0)])
    kv.close(2, 0, _like)
    assert _counts(kv) == (6, 2, 0)


def test_what_is_cached_makes_room_from_its_end_and_the_oldest_first() -> None:
    kv = _manager(num_blocks=24, max_sequences=3)
    for key, tokens in ((1, _like), (2, _other)):
        kv.open(key, 48)
        kv.fill(key, 48, tokens)
    kv.close(1, 0, _like)
    kv.close(2, 0, _like)
    assert (_counts(kv), kv.take_moves()) == ((0, 24, 0), [])
    assert kv.fits(96)
    kv.open(3, 4)
    assert kv.take_moves() == [KvTruncate(0, 16)], "some at once, and no more"
    assert kv.find(b"", _like(0, 48)) == KvSource(0, 16)
    assert kv.grow(3, 40)
    assert kv.find(b"", _like(0, 48)) is None
    assert kv.find(b"", _other(0, 48)) == KvSource(1, 48)
    kv.drop_cached()
    assert _counts(kv) == (14, 0, 10)
    kv.check_integrity({3: 4})


def test_without_a_cache_nothing_outlives_its_sequence() -> None:
    kv = _manager(has_cache=False)
    kv.open(1, 8)
    kv.fill(1, 8, _like)
    kv.close(1, 0, _like)
    assert (_counts(kv), kv.take_moves()) == ((8, 0, 0), [KvDrop(0)])


def test_what_is_cached_gives_way_to_consecutive_ids_and_moves_if_it_is_long() -> None:
    for length, moves in ((128, [KvShare(1, 3, 128), KvDrop(1)]), (124, [KvDrop(1)])):
        kv = _manager(num_blocks=200, is_ordered=True)
        for key in (0, 1, 2):
            kv.open(key, length, salt=b"%d" % key)
        kv.fill(1, length, lambda start, end: bytes(4 * (end - start)))
        kv.close(1, 0, _like)
        assert kv.open(9, 4) == 1, "between two that run"
        assert kv.take_moves() == moves
        assert (kv.find(b"1", bytes(4 * length)) is not None) == (len(moves) == 2)
        kv.check_integrity({0: 1, 2: 1, 9: 1})


TABLE = BlockTable(0, [1], 4)

# law, broken account
BROKEN = [
    ("lost block", lambda: integrity.check_counts(BlockCounts(3, 0, 4), 8)),
    ("negative count", lambda: integrity.check_counts(BlockCounts(9, 0, -1), 8)),
    ("reference without table", lambda: integrity.check_references([1], [1, 0], [])),
    ("table without reference", lambda: integrity.check_references([0, 1], [0, 0], [BlockTable(0, [1], 4)])),
    ("free twice", lambda: integrity.check_references([0, 0, 1], [0, 0], [])),
    ("free and used", lambda: integrity.check_references([0, 1], [1, 0], [BlockTable(0, [0], 4)])),
    ("nowhere", lambda: integrity.check_references([0], [0, 0], [])),
    ("table too short", lambda: integrity.check_tables([BlockTable(0, [1], 5)], 4)),
    ("table too long", lambda: integrity.check_tables([BlockTable(0, [1, 2], 4)], 4)),
    ("block twice in a table", lambda: integrity.check_tables([BlockTable(0, [1, 1], 5)], 4)),
    ("id lost", lambda: integrity.check_seq_ids([1], [], 2)),
    ("id free and used", lambda: integrity.check_seq_ids([0, 1], [BlockTable(0, [], 0)], 2)),
    ("id used twice", lambda: integrity.check_seq_ids([1], [BlockTable(0, [], 0), BlockTable(0, [], 0)], 2)),
    ("table of nobody", lambda: integrity.check_coverage({1: BlockTable(0, [], 0)}, {})),
    ("table missing", lambda: integrity.check_coverage({}, {1: 0})),
    ("lock without a sequence", lambda: integrity.check_locks([1], BlockCounts(0, 1, 0), [BlockTable(0, [0], 4)], [])),
    ("cached, not counted", lambda: integrity.check_locks([0], BlockCounts(1, 0, 0), [BlockTable(0, [0], 4)], [])),
    ("table not known", lambda: integrity.check_known({}, (), {0: BlockTable(0, [], 0)}, [BlockTable(0, [], 0)])),
    ("running and cached", lambda: integrity.check_known({0: 0}, (0,), {0: TABLE}, [TABLE])),
    ("cached beyond what is known", lambda: integrity.check_known({0: 3}, (0,), {0: TABLE}, [])),
    ("known beyond the table", lambda: integrity.check_known({0: 5}, (), {0: TABLE}, [TABLE])),
    ("length not covered", lambda: integrity.check_coverage({1: BlockTable(0, [0], 3)}, {1: 4})),
]


@pytest.mark.parametrize("check", [case[1] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_a_broken_account_is_noticed(check) -> None:  # noqa: ANN001 - a closure of the table above
    with pytest.raises(InternalError):
        check()


def test_a_block_cannot_be_released_more_often_than_it_is_held() -> None:
    pool = BlockPool(2)
    blocks = pool.allocate(1)
    pool.acquire(blocks)
    pool.release(blocks)
    assert pool.num_free == 1
    pool.release(blocks)
    with pytest.raises(AssertionError):
        pool.release(blocks)
    with pytest.raises(AssertionError):
        pool.acquire(blocks)


NUM_COMMON = (0, 4, 8, 6, 11, 3)
"""Tokens that the texts of each kind have in common with all others."""


class KvMachine(RuleBasedStateMachine):
    """Any order of opening, sharing, filling, growing, cutting, closing and flushing keeps the accounts.

    Tokens of a sequence come from its `kind`: sequences of kinds that agree below a position begin alike.
    """

    keys = Bundle("keys")

    @initialize(is_ordered=st.booleans(), num_seq_ids=st.integers(4, 7))
    def start(self, is_ordered: bool, num_seq_ids: int) -> None:
        self.kv = KvManager(KvShape(12, 4, 4, num_seq_ids, is_ordered=is_ordered))
        self.lengths: dict[int, int] = {}
        self.texts: dict[int, bytes] = {}
        self.seq_ids: dict[int, int] = {}
        self.held: dict[int, bytes] = {}
        self.next_key = 0

    @rule(target=keys, kind=st.integers(0, 5), salt=st.sampled_from([b"", b"s"]), length=st.integers(1, 30))
    def open(self, kind: int, salt: bytes, length: int) -> int:
        self.next_key += 1
        text = bytes(4 * NUM_COMMON[kind]) + bytes([kind + 1]) * 200
        source = self.kv.find(salt, text[: 4 * (length - 1)])
        if source is not None:
            assert self.held[source.seq_id][: 4 * source.num_tokens] == text[: 4 * source.num_tokens]
        if self.kv.fits(length, source):
            self._open(self.next_key, length, salt, source)
            self.texts[self.next_key] = text
        return self.next_key

    @rule(target=keys, other=keys, shared=st.integers(1, 30), extra=st.integers(0, 9))
    def share(self, other: int, shared: int, extra: int) -> int:
        self.next_key += 1
        source = KvSource(self.seq_ids.get(other, 0), min(shared, self.lengths.get(other, 0)))
        if source.num_tokens and self.kv.fits(source.num_tokens + extra, source):
            self._open(self.next_key, source.num_tokens + extra, b"", source)
            self.texts[self.next_key] = self.texts[other]
        return self.next_key

    @rule(key=keys, num_tokens=st.integers(1, 30))
    def fill(self, key: int, num_tokens: int) -> None:
        if key in self.lengths:
            self._fill(key, min(num_tokens, self.lengths[key]))

    @rule(key=keys, more=st.integers(0, 9))
    def grow(self, key: int, more: int) -> None:
        if key in self.lengths and self.kv.grow(key, self.lengths[key] + more):
            self.lengths[key] += more

    @rule(key=keys, less=st.integers(0, 9))
    def truncate(self, key: int, less: int) -> None:
        if key in self.lengths:
            self.lengths[key] = max(0, self.lengths[key] - less)
            self.kv.truncate(key, self.lengths[key])

    @rule(key=consumes(keys))
    def close(self, key: int) -> None:
        if self.lengths.pop(key, None) is not None:
            self._follow_moves()
            held, text = self.held.get(self.seq_ids.pop(key), b""), self.texts[key]
            self.kv.close(key, len(held) // 4, lambda start, end: text[4 * start : 4 * end])

    @rule()
    def flush(self) -> None:
        self.kv.drop_cached()
        assert self.kv.statistics().num_cached == 0

    @invariant()
    def accounts_hold(self) -> None:
        if hasattr(self, "kv"):
            self.kv.check_integrity(self.lengths)
            self._follow_moves()

    def _open(self, key: int, length: int, salt: bytes, source: KvSource | None) -> None:
        self.seq_ids[key] = self.kv.open(key, length, salt=salt, source=source)
        self.lengths[key] = length

    def _fill(self, key: int, num_tokens: int) -> None:
        self._follow_moves()
        seq_id, text = self.seq_ids[key], self.texts[key]
        held = self.held.get(seq_id, b"")
        self.held[seq_id] = held + text[len(held) : 4 * num_tokens]
        self.kv.fill(key, num_tokens, lambda start, end: text[4 * start : 4 * end])

    def _follow_moves(self) -> None:
        """Does with bytes what a backend does with its cells."""
        for move in self.kv.take_moves():
            match move:
                case KvShare(src, dst, length):
                    assert not self.held.get(dst)
                    self.held[dst] = self.held.get(src, b"")[: 4 * length]
                case KvTruncate(seq_id, length):
                    self.held[seq_id] = self.held.get(seq_id, b"")[: 4 * length]
                case KvDrop(seq_id):
                    self.held.pop(seq_id, None)


KvMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestKvMachine = KvMachine.TestCase
