"""Memory of sequences: blocks as accounting, sequence ids, and the moves that the backend carries out.

Decides whether a length fits, who holds which blocks, and what is kept of a sequence that has ended. Does not know
requests, order or time: a caller that is told False must free something or wait. One sequence's range of tokens, with
the owner of each part:

    0 .......... shared .......... own full blocks .......... own partial block ... length
    |  held with other tables     |  held by this table alone                     |

Only full blocks are shared. A sequence that writes into a partly filled block owns it: `open` gives it a fresh one, and
`grow` replaces one that truncation left shared.

A sequence that is closed keeps what it has computed and its id, cached, unless another one holds the same full blocks
(`core/kv/radix_tree.py` knows). What is cached is evicted when blocks or ids lack, so all of it counts as room. A new
sequence that begins like one in memory shares its blocks; when that one is cached and holds nothing else, it takes over
its id as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tidegate.core.kv import integrity
from tidegate.core.kv.block_pool import BlockCounts, BlockPool
from tidegate.core.kv.integrity import BlockTable
from tidegate.core.kv.radix_tree import RadixTree
from tidegate.core.kv.seq_ids import IdChoice, choose_id
from tidegate.core.plan import KvDrop, KvMove, KvShare, KvTruncate

TOKEN_BYTES = 4
EVICTED_AT_ONCE = 8
"""Blocks that an eviction takes at least, where it can: a backend may look at all its cells for each cut."""
RELOCATED_TOKENS = 128
"""What is cached under an id that is wanted for a running sequence moves to another one if it is at least that long: a
move copies a whole sequence there, at the price of reading some tokens."""

Packed = Callable[[int, int], bytes]
"""Returns the tokens of positions `start .. end` of a sequence, 4 bytes each."""


@dataclass(frozen=True, slots=True)
class KvShape:
    """Sizes of the memory. `max_sequences` run at once; the ids beyond them only hold what is cached.

    `is_ordered`: see `core/kv/seq_ids.py`.
    """

    num_blocks: int
    block_tokens: int
    max_sequences: int
    num_seq_ids: int
    has_cache: bool = True
    is_ordered: bool = False


@dataclass(frozen=True, slots=True)
class KvSource:
    """The first `num_tokens` of sequence id `seq_id`, running or cached, are those of a new sequence."""

    seq_id: int
    num_tokens: int


class KvManager:
    """Tables by key while sequences run, by sequence id always. Moves pile up, in order, until a step takes them."""

    def __init__(self, shape: KvShape) -> None:
        self._shape = shape
        self._block_tokens = shape.block_tokens
        self._pool = BlockPool(shape.num_blocks)
        self._tree = RadixTree(shape.block_tokens * TOKEN_BYTES)
        self._free_ids = set(range(shape.num_seq_ids))
        self._running: dict[int, BlockTable] = {}
        self._tables: dict[int, BlockTable] = {}
        self._moves: list[KvMove] = []

    @property
    def num_free_rows(self) -> int:
        """How many more sequences may run."""
        return self._shape.max_sequences - len(self._running)

    @property
    def has_moves(self) -> bool:
        return bool(self._moves)

    @property
    def block_tokens(self) -> int:
        return self._block_tokens

    def statistics(self) -> BlockCounts:
        return self._pool.statistics()

    def find(self, salt: bytes, tokens: bytes) -> KvSource | None:
        """Returns who holds the longest beginning of packed `tokens`, one block at least; None for nobody."""
        match = self._tree.match(salt, tokens)
        if match is None:
            return None
        return KvSource(match.owner, match.num_blocks * self._block_tokens + match.num_bytes // TOKEN_BYTES)

    def fits(self, num_tokens: int, source: KvSource | None = None, *, num_reserved_blocks: int = 0) -> bool:
        """Whether a new sequence of `num_tokens`, those of `source` in memory already, finds a row and blocks.

        `num_reserved_blocks` are to stay free beside it.
        """
        num_needed, num_room = self._num_blocks(num_tokens), self._pool.num_available
        if source is not None:
            common = self._common(source)
            num_needed -= len(common)
            num_room -= sum(self._pool.is_cached(block) for block in common)
        return self.num_free_rows > 0 and num_needed + num_reserved_blocks <= num_room

    def open(self, key: int, num_tokens: int, *, salt: bytes = b"", source: KvSource | None = None) -> int:
        """Gives a new sequence an id and blocks for `num_tokens`. `fits` has said yes."""
        blocks: list[int] = []
        if source is None:
            seq_id = self._begin(salt)
        else:
            blocks = self._common(source)
            self._pool.acquire(blocks)
            seq_id = self._begin_with(source)
        num_own = self._num_blocks(num_tokens) - len(blocks)
        self._evict(num_own)
        table = BlockTable(seq_id, blocks + self._pool.allocate(num_own), num_tokens)
        self._running[key] = self._tables[seq_id] = table
        return seq_id

    def grow(self, key: int, num_tokens: int) -> bool:
        """Makes a table cover `num_tokens`. Returns False, and changes nothing, when blocks are lacking."""
        table = self._running[key]
        if num_tokens <= table.length:
            return True
        num_new = self._num_blocks(num_tokens) - len(table.blocks)
        has_shared_tail = table.length % self._block_tokens != 0 and self._pool.is_shared(table.blocks[-1])
        if num_new + has_shared_tail > self._pool.num_available:
            return False
        self._evict(num_new + has_shared_tail)
        if has_shared_tail:
            self._pool.release([table.blocks.pop()])
            num_new += 1
        if num_new:
            table.blocks += self._pool.allocate(num_new)
        table.length = num_tokens
        return True

    def reach(self, key: int, *, num_reserved_blocks: int) -> int:
        """Returns how many tokens a table could cover with `num_reserved_blocks` still to be had."""
        num_room = max(0, self._pool.num_available - num_reserved_blocks)
        return (len(self._running[key].blocks) + num_room) * self._block_tokens

    def truncate(self, key: int, num_tokens: int) -> None:
        """Keeps the first `num_tokens` of a sequence."""
        table = self._running[key]
        num_kept = self._num_blocks(num_tokens)
        self._pool.release(table.blocks[num_kept:])
        del table.blocks[num_kept:]
        table.length = num_tokens
        if self._tree.num_blocks(table.seq_id) > num_tokens // self._block_tokens:
            self._tree.cut(table.seq_id, num_tokens // self._block_tokens)
        self._moves.append(KvTruncate(table.seq_id, num_tokens))

    def fill(self, key: int, num_tokens: int, packed: Packed) -> None:
        """Says that the first `num_tokens` of a sequence are computed: its full blocks are for all to find."""
        seq_id = self._running[key].seq_id
        num_known, num_full = self._tree.num_blocks(seq_id), num_tokens // self._block_tokens
        if num_full > num_known and self._shape.has_cache:
            tokens = packed(num_known * self._block_tokens, num_full * self._block_tokens)
            self._drop_redundant(self._tree.insert(seq_id, tokens))

    def close(self, key: int, num_tokens: int, packed: Packed) -> None:
        """Ends a sequence whose first `num_tokens` are computed. They stay, cached, unless somebody else holds them."""
        self.fill(key, num_tokens, packed)
        table = self._running.pop(key)
        num_kept = self._tree.num_blocks(table.seq_id) * self._block_tokens
        has_tail = 0 < num_kept < num_tokens
        if not self._tree.unlock(table.seq_id, packed(num_kept, num_tokens) if has_tail else b""):
            self._pool.release(table.blocks)
            self._free(table.seq_id)
            return
        num_kept = num_tokens if has_tail else num_kept
        num_blocks = self._num_blocks(num_kept)
        self._pool.release(table.blocks[num_blocks:])
        self._pool.unlock(table.blocks[:num_blocks])
        self._cut_table(table, num_kept)

    def drop_cached(self) -> None:
        """Frees every block that no running sequence holds."""
        for seq_id in self._tree.cached_owners:
            self._drop(seq_id)

    def take_moves(self) -> list[KvMove]:
        """Returns the moves since the last call, in order."""
        moves, self._moves = self._moves, []
        return moves

    def check_integrity(self, lengths: Mapping[int, int]) -> None:
        """Raises InternalError when a conservation law is broken. `lengths`: key to tokens in the cache, all live."""
        tables, running = list(self._tables.values()), list(self._running.values())
        integrity.check_counts(self._pool.statistics(), self._pool.num_blocks)
        integrity.check_references(self._pool.free_blocks, self._pool.reference_counts, tables)
        integrity.check_locks(self._pool.lock_counts, self._pool.statistics(), tables, running)
        integrity.check_tables(tables, self._block_tokens)
        integrity.check_seq_ids(self._free_ids, tables, self._shape.num_seq_ids)
        integrity.check_coverage(self._running, lengths)
        known = {owner: self._tree.num_bytes(owner) // TOKEN_BYTES for owner in self._tree.owners}
        integrity.check_known(known, self._tree.cached_owners, self._tables, running)
        self._tree.check_integrity()

    # Ids

    def _begin(self, salt: bytes) -> int:
        """Returns the id of a new sequence that holds nothing."""
        choice = self._choose_id(None)
        self._clear(choice)
        self._tree.enter(choice.seq_id, salt)
        return choice.seq_id

    def _begin_with(self, source: KvSource) -> int:
        """Returns the id of a new sequence that holds what `source` names; its blocks are acquired."""
        num_blocks = source.num_tokens // self._block_tokens
        self._tree.touch(source.seq_id)
        choice = self._choose_id(source.seq_id if self._is_all_of(source) else None)
        if choice.seq_id != source.seq_id:
            self._clear(choice)
            self._moves.append(KvShare(source.seq_id, choice.seq_id, source.num_tokens))
            self._drop_redundant(self._tree.join(choice.seq_id, source.seq_id, num_blocks))
        elif choice.refuge is not None:
            self._relocate(choice.seq_id, choice.refuge)
            self._moves.append(KvTruncate(choice.seq_id, source.num_tokens))
            self._drop_redundant(self._tree.join(choice.seq_id, choice.refuge, num_blocks))
        else:
            self._take_over(source)
        return choice.seq_id

    def _take_over(self, source: KvSource) -> None:
        table = self._tables[source.seq_id]
        self._tree.lock(source.seq_id)
        self._tree.cut(source.seq_id, source.num_tokens // self._block_tokens)
        self._pool.forget(table.blocks)
        if table.length > source.num_tokens:
            self._moves.append(KvTruncate(source.seq_id, source.num_tokens))

    def _choose_id(self, preferred: int | None) -> IdChoice:
        used = frozenset(table.seq_id for table in self._running.values())
        cached = self._tree.cached_owners
        choice = choose_id(used, self._free_ids, cached, is_ordered=self._shape.is_ordered, preferred=preferred)
        if choice.refuge is not None and self._tables[choice.seq_id].length < RELOCATED_TOKENS:
            return replace(choice, refuge=None)
        return choice

    def _clear(self, choice: IdChoice) -> None:
        """Makes the chosen id hold nothing; nobody has it then."""
        if choice.evicted is not None and choice.refuge is not None:
            self._relocate(choice.seq_id, choice.refuge)
            self._moves.append(KvDrop(choice.seq_id))
            return
        if choice.evicted is not None:
            self._drop(choice.evicted)
        self._free_ids.remove(choice.seq_id)

    def _relocate(self, seq_id: int, refuge: int) -> None:
        """Gives a cached owner another id. What `seq_id` holds is nobody's then."""
        if refuge in self._tables:
            self._drop(refuge)
        self._free_ids.remove(refuge)
        table = self._tables[refuge] = self._tables.pop(seq_id)
        table.seq_id = refuge
        self._tree.rename(seq_id, refuge)
        self._moves.append(KvShare(seq_id, refuge, table.length))

    def _is_all_of(self, source: KvSource) -> bool:
        """Whether a source is cached and holds nothing else but a tail, or a part of one."""
        num_blocks = source.num_tokens // self._block_tokens
        return self._tree.is_cached(source.seq_id) and self._tree.num_blocks(source.seq_id) == num_blocks

    # What is cached

    def _evict(self, num_blocks: int) -> None:
        """Makes that many blocks free. The caller has looked that there are enough."""
        while self._pool.num_free < num_blocks:
            evicted = self._tree.evict(max(EVICTED_AT_ONCE, num_blocks - self._pool.num_free))
            assert evicted is not None
            table = self._tables[evicted.owner]
            self._pool.forget(table.blocks[evicted.num_kept :])
            if evicted.num_kept:
                self._cut_table(table, evicted.num_kept * self._block_tokens)
            else:
                self._free(evicted.owner)

    def _cut_table(self, table: BlockTable, num_tokens: int) -> None:
        """Keeps the first tokens of a table; the references to the blocks behind them are given back already."""
        del table.blocks[self._num_blocks(num_tokens) :]
        if table.length > num_tokens:
            table.length = num_tokens
            self._moves.append(KvTruncate(table.seq_id, num_tokens))

    def _drop_redundant(self, seq_ids: list[int]) -> None:
        for seq_id in seq_ids:
            self._drop(seq_id)

    def _drop(self, seq_id: int) -> None:
        """Forgets a cached table."""
        self._tree.remove(seq_id)
        self._pool.forget(self._tables[seq_id].blocks)
        self._free(seq_id)

    def _free(self, seq_id: int) -> None:
        del self._tables[seq_id]
        self._free_ids.add(seq_id)
        self._moves.append(KvDrop(seq_id))

    def _common(self, source: KvSource) -> list[int]:
        return self._tables[source.seq_id].blocks[: source.num_tokens // self._block_tokens]

    def _num_blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self._block_tokens)
