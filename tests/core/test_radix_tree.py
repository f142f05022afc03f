"""The radix tree against a dict of tuples: owner to salt and blocks."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidegate.core.kv.radix_tree import Match, RadixTree
from tidegate.errors import InternalError

SIZE = 8
ALIKE = {"a": b"aaaaaaaa", "b": b"aaaabbbb", "c": b"aacccccc"}
BLOCKS = st.lists(st.sampled_from("abc"), max_size=6)
SALTS = st.sampled_from([b"", b"salt"])
OWNERS = st.integers(0, 7)

Held = tuple[bytes, tuple[str, ...]]


def packed(blocks: str | tuple[str, ...] | list[str]) -> bytes:
    """Returns one block of tokens for each letter; those of "a" and "b" and of "a" and "c" begin alike."""
    return b"".join(ALIKE.get(letter, letter.encode() * SIZE) for letter in blocks)


def tree_of(*texts: str) -> RadixTree:
    """Owners 0, 1, ... hold these blocks; all are cached, in this order."""
    tree = RadixTree(SIZE)
    for owner, text in enumerate(texts):
        tree.enter(owner, b"")
        assert tree.insert(owner, packed(text)) == []
        assert tree.unlock(owner)
    return tree


def test_the_longest_beginning_is_found_in_whole_blocks_under_its_salt() -> None:
    tree = tree_of("abc", "abd")
    assert tree.match(b"", packed("abdx")) == Match(3, 1)
    assert tree.match(b"", packed("b")) is None, "one block at least"
    assert tree.match(b"other", packed("abc")) is None
    tree.check_integrity()


@pytest.mark.parametrize(
    ("tokens", "match"),
    [
        (packed("ab")[:-2], Match(1, 0, 6)),
        (packed("aa"), Match(1, 0, 4)),
        (packed("aba"), Match(2, 0, 2)),
        (packed("ab") + b"dddx", Match(2, 1, 3)),
        (packed("abdab"), Match(3, 1)),
        (packed("abd") + b"dd", Match(3, 1)),
    ],
)
def test_behind_whole_blocks_the_one_that_goes_on_alike_for_longest_is_found(tokens: bytes, match: Match) -> None:
    assert tree_of("abc", "abd").match(b"", tokens) == match


def test_a_tail_is_found_behind_the_last_block_of_who_is_cached() -> None:
    tree = RadixTree(SIZE)
    tree.enter(0, b"")
    tree.insert(0, packed("ab"))
    assert tree.unlock(0, b"dddx")
    assert tree.match(b"", packed("ab") + b"dddddd") == Match(2, 0, 3)
    assert tree.match(b"", packed("abd")) == Match(2, 0, 3)
    assert tree.match(b"", packed("ab") + b"x") == Match(2, 0)
    tree.rename(0, 5)
    assert (tree.num_blocks(5), tree.num_bytes(5)) == (2, 2 * SIZE + 4)
    tree.check_integrity()
    tree.lock(5)
    assert tree.match(b"", packed("abd")) == Match(2, 5)


@pytest.mark.parametrize("tail", [b"", bytes(SIZE)])
def test_a_broken_tail_is_noticed(tail: bytes) -> None:
    tree = tree_of("ab")
    tree._tails[0] = tail
    with pytest.raises(InternalError):
        tree.check_integrity()


def test_inside_a_run_that_a_longer_owner_holds_alone_the_next_block_counts_too() -> None:
    tree = tree_of("dddd")
    assert tree.match(b"", packed("dd") + b"ddd") == Match(2, 0, 3)
    assert tree.match(b"", packed("dd")) == Match(2, 0)


def test_the_tail_of_the_least_recently_used_goes_first_and_what_is_shared_last() -> None:
    tree = tree_of("aabbbb", "aac")
    tree.touch(0)
    assert [(e.owner, e.num_kept) for e in (tree.evict(1), tree.evict(2), tree.evict(9)) if e] == [
        (1, 0),
        (0, 4),
        (0, 0),
    ]
    assert tree.evict(1) is None


def test_whoever_runs_is_not_evicted() -> None:
    tree = tree_of("ab", "cd")
    tree.lock(0)
    first = tree.evict(1)
    assert first is not None
    assert (first.owner, first.num_kept) == (1, 1)


def test_an_owner_whose_blocks_another_one_has_too_is_not_kept() -> None:
    tree = tree_of("ab")
    tree.enter(1, b"")
    assert tree.insert(1, packed("a")) == []
    assert tree.insert(1, packed("b")) == [0], "the cached one is told"
    tree.remove(0)
    tree.enter(3, b"")
    assert not tree.unlock(3), "nothing is held for nothing"
    tree.enter(2, b"")
    tree.insert(2, packed("a"))
    assert not tree.unlock(2)
    assert tree.owners == {1}


def test_who_reads_past_the_end_of_a_cached_owner_in_one_go_makes_it_redundant() -> None:
    tree = tree_of("ab", "ax")
    tree.enter(2, b"")
    assert tree.insert(2, packed("abcd")) == [0]


def test_a_broken_tree_is_noticed() -> None:
    tree = tree_of("ab")
    tree._cached[9] = None
    with pytest.raises(InternalError):
        tree.check_integrity()


class RadixMachine(RuleBasedStateMachine):
    """Any order of calls; the model is a dict, and a list of cached owners by use."""

    @initialize()
    def start(self) -> None:
        self.tree = RadixTree(SIZE)
        self.held: dict[int, Held] = {}
        self.cached: list[int] = []
        self.tails: dict[int, bytes] = {}

    @rule(owner=OWNERS, salt=SALTS)
    def enter(self, owner: int, salt: bytes) -> None:
        if owner not in self.held:
            self.tree.enter(owner, salt)
            self.held[owner] = (salt, ())

    @rule(owner=OWNERS, other=OWNERS, num_blocks=st.integers(0, 6))
    def join(self, owner: int, other: int, num_blocks: int) -> None:
        if owner in self.held or other not in self.held:
            return
        redundant = self.tree.join(owner, other, num_blocks)
        salt, blocks = self.held[other]
        self.held[owner] = (salt, blocks[:num_blocks])
        self._drop_redundant(redundant)

    @rule(owner=OWNERS, blocks=BLOCKS)
    def insert(self, owner: int, blocks: list[str]) -> None:
        if owner not in self.held or owner in self.cached:
            return
        redundant = self.tree.insert(owner, packed(blocks))
        salt, known = self.held[owner]
        self.held[owner] = (salt, known + tuple(blocks))
        self._drop_redundant(redundant)

    @rule(owner=OWNERS, num_blocks=st.integers(0, 6))
    def cut(self, owner: int, num_blocks: int) -> None:
        if owner in self.held and owner not in self.cached:
            salt, blocks = self.held[owner]
            self.tree.cut(owner, min(num_blocks, len(blocks)))
            self.held[owner] = (salt, blocks[:num_blocks])

    @rule(owner=OWNERS, tail=st.sampled_from([b"", b"a", b"aaaab", b"cc"]))
    def unlock(self, owner: int, tail: bytes) -> None:
        if owner not in self.held or owner in self.cached:
            return
        is_worth = bool(self.held[owner][1]) and not self._others_hold(owner)
        assert self.tree.unlock(owner, tail) == is_worth
        if is_worth:
            self.cached.append(owner)
            self.tails[owner] = tail
        else:
            del self.held[owner]

    @rule(owner=OWNERS)
    def lock(self, owner: int) -> None:
        if owner in self.cached:
            self.tree.lock(owner)
            self.cached.remove(owner)
            del self.tails[owner]

    @rule(owner=OWNERS)
    def touch(self, owner: int) -> None:
        self.tree.touch(owner)
        if owner in self.cached:
            self.cached.remove(owner)
            self.cached.append(owner)

    @rule(owner=OWNERS, other=OWNERS)
    def rename(self, owner: int, other: int) -> None:
        if owner in self.cached and other not in self.held:
            self.tree.rename(owner, other)
            self.held[other] = self.held.pop(owner)
            self.cached[self.cached.index(owner)] = other
            self.tails[other] = self.tails.pop(owner)

    @rule(owner=OWNERS)
    def remove(self, owner: int) -> None:
        if owner in self.held:
            self.tree.remove(owner)
            self._forget(owner)

    @precondition(lambda self: self.cached)
    @rule(num_blocks=st.integers(1, 4))
    def evict(self, num_blocks: int) -> None:
        owner = self.cached[0]
        salt, blocks = self.held[owner]
        others = [known for key, (s, known) in self.held.items() if s == salt and key != owner]
        num_shared = max((_num_common(blocks, known) for known in others), default=0)
        num_kept = len(blocks) - num_blocks if len(blocks) - num_blocks > num_shared else 0
        evicted = self.tree.evict(num_blocks)
        assert evicted is not None
        assert evicted.owner == owner
        assert evicted.num_kept == num_kept
        if evicted.num_kept:
            self.held[owner] = (salt, blocks[: evicted.num_kept])
            self.tails[owner] = b""
        else:
            self._forget(owner)

    @rule(salt=SALTS, blocks=BLOCKS, num_cut=st.integers(0, SIZE - 1))
    def match(self, salt: bytes, blocks: list[str], num_cut: int) -> None:
        tokens = packed(blocks)[: len(blocks) * SIZE - num_cut]
        found = self.tree.match(salt, tokens)
        texts = {key: packed(known) + self.tails.get(key, b"") for key, (s, known) in self.held.items() if s == salt}
        commons = {key: _num_common_bytes(tokens, text) for key, text in texts.items()}
        best = max(commons.values(), default=0)
        assert (found.num_blocks * SIZE + found.num_bytes if found else 0) == (best if best >= SIZE else 0)
        if found is not None:
            assert commons[found.owner] == best

    @invariant()
    def both_agree(self) -> None:
        if hasattr(self, "tree"):
            self.tree.check_integrity()
            assert self.tree.cached_owners == tuple(self.cached)
            assert {owner: self.tree.num_blocks(owner) for owner in self.tree.owners} == {
                owner: len(blocks) for owner, (_, blocks) in self.held.items()
            }
            assert {owner: self.tree.num_bytes(owner) for owner in self.tree.owners} == {
                owner: SIZE * len(blocks) + len(self.tails.get(owner, b"")) for owner, (_, blocks) in self.held.items()
            }

    def _others_hold(self, owner: int) -> bool:
        salt, blocks = self.held[owner]
        others = [known for key, (s, known) in self.held.items() if s == salt and key != owner]
        return any(known[: len(blocks)] == blocks for known in others)

    def _drop_redundant(self, redundant: list[int]) -> None:
        assert sorted(redundant) == sorted(owner for owner in self.cached if self._others_hold(owner))
        for owner in redundant:
            self.remove(owner)

    def _forget(self, owner: int) -> None:
        del self.held[owner]
        if owner in self.cached:
            self.cached.remove(owner)
            del self.tails[owner]


def _num_common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


RadixMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestRadixMachine = RadixMachine.TestCase


def _num_common_bytes(one: bytes, other: bytes) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
