"""Blocks as an account: which are free, how many tables hold each of the others, and how many of those run.

A block is free (no table holds it), used (a running sequence's table does) or cached (only tables that are kept for
reuse do).
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """Where the blocks are. `num_cached` are held by no sequence but still good for reuse."""

    num_free: int
    num_cached: int
    num_used: int


class BlockPool:
    """A fixed number of blocks with reference counts. A lock is a reference that runs."""

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._free = list(range(num_blocks - 1, -1, -1))
        self._num_references = [0] * num_blocks
        self._num_locks = [0] * num_blocks
        self._num_cached = 0

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def num_available(self) -> int:
        """Blocks that are free, or would be if nothing were kept for reuse."""
        return len(self._free) + self._num_cached

    @property
    def free_blocks(self) -> tuple[int, ...]:
        return tuple(self._free)

    @property
    def reference_counts(self) -> tuple[int, ...]:
        return tuple(self._num_references)

    @property
    def lock_counts(self) -> tuple[int, ...]:
        return tuple(self._num_locks)

    def statistics(self) -> BlockCounts:
        num_free, num_cached = len(self._free), self._num_cached
        return BlockCounts(num_free, num_cached, self.num_blocks - num_free - num_cached)

    def allocate(self, num_blocks: int) -> list[int]:
        """Returns free blocks, each with one reference, locked. The caller has looked that there are enough."""
        assert num_blocks <= len(self._free)
        taken = [self._free.pop() for _ in range(num_blocks)]
        for block in taken:
            self._num_references[block] = self._num_locks[block] = 1
        return taken

    def acquire(self, blocks: Iterable[int]) -> None:
        """Adds one reference, locked, to each of `blocks`, all of them held by some table."""
        for block in blocks:
            assert self._num_references[block] > 0
            self._num_references[block] += 1
            self._num_cached -= self._num_locks[block] == 0
            self._num_locks[block] += 1

    def unlock(self, blocks: Iterable[int]) -> None:
        """One locked reference of each of `blocks` is kept for reuse only, from now on."""
        for block in blocks:
            assert self._num_locks[block] > 0
            self._num_locks[block] -= 1
            self._num_cached += self._num_locks[block] == 0

    def release(self, blocks: Iterable[int]) -> None:
        """Takes one locked reference from each of `blocks`; those without any are free again."""
        for block in blocks:
            self.unlock((block,))
            self.forget((block,))

    def forget(self, blocks: Iterable[int]) -> None:
        """Takes one reference that is not locked from each of `blocks`; those without any are free again."""
        for block in blocks:
            assert self._num_references[block] > self._num_locks[block]
            self._num_references[block] -= 1
            if self._num_references[block] == 0:
                self._num_cached -= 1
                self._free.append(block)

    def is_shared(self, block: int) -> bool:
        return self._num_references[block] > 1

    def is_cached(self, block: int) -> bool:
        return self._num_references[block] > 0 and self._num_locks[block] == 0
