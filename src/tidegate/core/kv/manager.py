"""Memory of sequences: blocks as accounting, sequence ids, and the moves that the backend carries out.

Decides whether a length fits, and who holds which blocks. Does not know requests, order or time: a caller that is told
False must free something or wait. One sequence's range of tokens, with the owner of each part:

    0 .......... shared .......... own full blocks .......... own partial block ... length
    |  held with other tables     |  held by this table alone                     |

Only full blocks are shared. A sequence that writes into a partly filled block owns it: `share` gives it a fresh one,
and `grow` replaces one that truncation left shared. Every table gives its references back in `close`.
"""

import heapq
from collections.abc import Mapping

from tidegate.core.kv import integrity
from tidegate.core.kv.block_pool import BlockCounts, BlockPool
from tidegate.core.kv.integrity import BlockTable
from tidegate.core.plan import KvDrop, KvMove, KvShare, KvTruncate


class KvManager:
    """Tables by sequence key. Moves pile up, in order, until a step takes them."""

    def __init__(self, *, num_blocks: int, block_tokens: int, max_sequences: int) -> None:
        self._pool = BlockPool(num_blocks)
        self._block_tokens = block_tokens
        self._max_sequences = max_sequences
        self._free_ids = list(range(max_sequences))
        self._tables: dict[int, BlockTable] = {}
        self._moves: list[KvMove] = []

    @property
    def num_free_ids(self) -> int:
        return len(self._free_ids)

    @property
    def has_moves(self) -> bool:
        return bool(self._moves)

    def statistics(self) -> BlockCounts:
        return self._pool.statistics()

    def fits(self, num_tokens: int, *, num_shared: int = 0, num_reserved_blocks: int = 0) -> bool:
        """Whether a new sequence of `num_tokens`, the first `num_shared` of them another's, finds id and blocks.

        `num_reserved_blocks` are to stay free beside it.
        """
        num_blocks = self._num_blocks(num_tokens) - num_shared // self._block_tokens
        return bool(self._free_ids) and num_blocks + num_reserved_blocks <= self._pool.num_free

    def open(self, key: int, num_tokens: int) -> int:
        """Gives a new sequence an id and blocks for `num_tokens`. `fits` has said yes."""
        blocks = self._pool.allocate(self._num_blocks(num_tokens))
        return self._enter(key, blocks, num_tokens)

    def share(self, source: int, key: int, *, num_shared: int, num_tokens: int) -> int:
        """Opens a sequence whose first `num_shared` tokens are those of `source`. `fits` has said yes."""
        src = self._tables[source]
        common = src.blocks[: num_shared // self._block_tokens]
        self._pool.acquire(common)
        own = self._pool.allocate(self._num_blocks(num_tokens) - len(common))
        seq_id = self._enter(key, common + own, num_tokens)
        self._moves.append(KvShare(src.seq_id, seq_id, num_shared))
        return seq_id

    def grow(self, key: int, num_tokens: int) -> bool:
        """Makes a table cover `num_tokens`. Returns False, and changes nothing, when blocks are lacking."""
        table = self._tables[key]
        if num_tokens <= table.length:
            return True
        num_new = self._num_blocks(num_tokens) - len(table.blocks)
        has_shared_tail = table.length % self._block_tokens != 0 and self._pool.is_shared(table.blocks[-1])
        if num_new + has_shared_tail > self._pool.num_free:
            return False
        if has_shared_tail:
            self._pool.release([table.blocks.pop()])
            num_new += 1
        if num_new:
            table.blocks += self._pool.allocate(num_new)
        table.length = num_tokens
        return True

    def reach(self, key: int, *, num_reserved_blocks: int) -> int:
        """Returns how many tokens a table could cover with `num_reserved_blocks` still free."""
        num_free = max(0, self._pool.num_free - num_reserved_blocks)
        return (len(self._tables[key].blocks) + num_free) * self._block_tokens

    def truncate(self, key: int, num_tokens: int) -> None:
        """Keeps the first `num_tokens` of a sequence."""
        table = self._tables[key]
        num_kept = self._num_blocks(num_tokens)
        self._pool.release(table.blocks[num_kept:])
        del table.blocks[num_kept:]
        table.length = num_tokens
        self._moves.append(KvTruncate(table.seq_id, num_tokens))

    def close(self, key: int) -> None:
        """Gives back a sequence's id and blocks."""
        table = self._tables.pop(key)
        self._pool.release(table.blocks)
        heapq.heappush(self._free_ids, table.seq_id)
        self._moves.append(KvDrop(table.seq_id))

    def drop_cached(self) -> None:
        """Frees every block that no table holds. So far no block outlives its table: there are none."""

    def take_moves(self) -> list[KvMove]:
        """Returns the moves since the last call, in order."""
        moves, self._moves = self._moves, []
        return moves

    def check_integrity(self, lengths: Mapping[int, int]) -> None:
        """Raises InternalError when a conservation law is broken. `lengths`: key to tokens in the cache, all live."""
        tables = list(self._tables.values())
        integrity.check_counts(self._pool.statistics(), self._pool.num_blocks)
        integrity.check_references(self._pool.free_blocks, self._pool.reference_counts, tables)
        integrity.check_tables(tables, self._block_tokens)
        integrity.check_seq_ids(self._free_ids, tables, self._max_sequences)
        integrity.check_coverage(self._tables, lengths)

    def _num_blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self._block_tokens)

    def _enter(self, key: int, blocks: list[int], num_tokens: int) -> int:
        # The least free id: some backends are fastest when ids in use are consecutive.
        seq_id = heapq.heappop(self._free_ids)
        self._tables[key] = BlockTable(seq_id, blocks, num_tokens)
        return seq_id
