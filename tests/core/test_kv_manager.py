"""Memory: accounting, moves and the laws that hold them together."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from tidegate.core.kv import integrity
from tidegate.core.kv.block_pool import BlockCounts, BlockPool
from tidegate.core.kv.integrity import BlockTable
from tidegate.core.kv.manager import KvManager
from tidegate.core.plan import KvDrop, KvShare, KvTruncate
from tidegate.errors import InternalError


def _manager(num_blocks: int = 8, max_sequences: int = 4) -> KvManager:
    return KvManager(num_blocks=num_blocks, block_tokens=4, max_sequences=max_sequences)


def test_a_sequence_takes_the_blocks_that_its_length_needs_and_gives_them_back() -> None:
    kv = _manager()
    assert kv.open(1, 9) == 0
    assert kv.statistics() == BlockCounts(num_free=5, num_cached=0, num_used=3)
    assert kv.grow(1, 12)
    assert kv.statistics().num_used == 3
    assert kv.grow(1, 13)
    assert kv.statistics().num_used == 4
    kv.close(1)
    assert kv.statistics() == BlockCounts(num_free=8, num_cached=0, num_used=0)
    assert kv.take_moves() == [KvDrop(0)]
    assert kv.take_moves() == []


def test_sharing_takes_references_for_full_blocks_and_a_fresh_one_for_the_rest() -> None:
    kv = _manager()
    kv.open(1, 10)
    assert kv.fits(10, num_shared=10)
    assert kv.share(1, 2, num_shared=10, num_tokens=10) == 1
    assert kv.statistics().num_used == 4
    kv.close(1)
    assert kv.statistics().num_used == 3
    assert kv.take_moves() == [KvShare(0, 1, 10), KvDrop(0)]
    kv.check_integrity({2: 10})


def test_a_whole_number_of_blocks_is_shared_for_nothing() -> None:
    kv = _manager(num_blocks=2)
    kv.open(1, 8)
    assert kv.fits(8, num_shared=8)
    assert not kv.fits(9, num_shared=8)
    kv.share(1, 2, num_shared=8, num_tokens=8)
    assert kv.statistics().num_used == 2


def test_growing_without_enough_blocks_changes_nothing() -> None:
    kv = _manager(num_blocks=2)
    kv.open(1, 4)
    kv.open(2, 4)
    assert not kv.grow(1, 5)
    kv.check_integrity({1: 4, 2: 4})
    kv.close(2)
    assert kv.grow(1, 5)


def test_a_shared_block_that_was_cut_is_replaced_before_it_is_written() -> None:
    kv = _manager(num_blocks=3)
    kv.open(1, 8)
    kv.share(1, 2, num_shared=8, num_tokens=8)
    kv.truncate(2, 7)
    assert kv.grow(2, 8)
    assert kv.statistics().num_used == 3
    kv.truncate(2, 7)
    kv.share(1, 3, num_shared=8, num_tokens=8)
    kv.truncate(3, 7)
    assert not kv.grow(3, 8), "the pool is out of blocks for a third copy"
    assert kv.take_moves()[1] == KvTruncate(1, 7)


def test_the_least_free_id_is_given_out() -> None:
    kv = _manager()
    assert [kv.open(key, 1) for key in range(4)] == [0, 1, 2, 3]
    assert not kv.fits(1)
    kv.close(2)
    kv.close(1)
    assert kv.open(9, 1) == 1


def test_reserved_blocks_stay_free() -> None:
    kv = _manager(num_blocks=3)
    assert kv.fits(8, num_reserved_blocks=1)
    assert not kv.fits(9, num_reserved_blocks=1)


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


class KvMachine(RuleBasedStateMachine):
    """Any order of opening, sharing, growing, cutting and closing keeps the accounts."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.kv = KvManager(num_blocks=12, block_tokens=4, max_sequences=5)
        self.lengths: dict[int, int] = {}
        self.next_key = 0

    @rule(target=keys, length=st.integers(1, 30))
    def open(self, length: int) -> int:
        self.next_key += 1
        if self.kv.fits(length):
            self.kv.open(self.next_key, length)
            self.lengths[self.next_key] = length
        return self.next_key

    @rule(target=keys, source=keys, shared=st.integers(1, 30), extra=st.integers(0, 9))
    def share(self, source: int, shared: int, extra: int) -> int:
        self.next_key += 1
        shared = min(shared, self.lengths.get(source, 0))
        if shared and self.kv.fits(shared + extra, num_shared=shared):
            self.kv.share(source, self.next_key, num_shared=shared, num_tokens=shared + extra)
            self.lengths[self.next_key] = shared + extra
        return self.next_key

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
            self.kv.close(key)

    @invariant()
    def accounts_hold(self) -> None:
        self.kv.check_integrity(self.lengths)


KvMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestKvMachine = KvMachine.TestCase
