"""Blocks as an account: which are free, and how many tables hold each of the others."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """Where the blocks are. `num_cached` are held by no sequence but still good for reuse."""

    num_free: int
    num_cached: int
    num_used: int


class BlockPool:
    """A fixed number of blocks with reference counts."""

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._free = list(range(num_blocks - 1, -1, -1))
        self._num_references = [0] * num_blocks

    @property
    def num_free(self) -> int:
        return len(self._free)

    @property
    def free_blocks(self) -> tuple[int, ...]:
        return tuple(self._free)

    @property
    def reference_counts(self) -> tuple[int, ...]:
        return tuple(self._num_references)

    def statistics(self) -> BlockCounts:
        return BlockCounts(num_free=len(self._free), num_cached=0, num_used=self.num_blocks - len(self._free))

    def allocate(self, num_blocks: int) -> list[int]:
        """Returns free blocks, each with one reference. The caller has looked that there are enough."""
        assert num_blocks <= len(self._free)
        taken = [self._free.pop() for _ in range(num_blocks)]
        for block in taken:
            self._num_references[block] = 1
        return taken

    def acquire(self, blocks: Iterable[int]) -> None:
        """Adds one reference to each of `blocks`, all of them in use."""
        for block in blocks:
            assert self._num_references[block] > 0
            self._num_references[block] += 1

    def release(self, blocks: Iterable[int]) -> None:
        """Takes one reference from each of `blocks`; those without any are free again."""
        for block in blocks:
            assert self._num_references[block] > 0
            self._num_references[block] -= 1
            if self._num_references[block] == 0:
                self._free.append(block)

    def is_shared(self, block: int) -> bool:
        return self._num_references[block] > 1
