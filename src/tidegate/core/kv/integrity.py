"""Conservation laws of the engine's memory, as functions that raise InternalError."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidegate.core.kv.block_pool import BlockCounts
from tidegate.errors import InternalError


@dataclass(slots=True)
class BlockTable:
    """Blocks that cover the first `length` tokens of one sequence. Only the last one may be partly filled."""

    seq_id: int
    blocks: list[int]
    length: int


def check_counts(counts: BlockCounts, num_blocks: int) -> None:
    """free + cached + used = total."""
    total = counts.num_free + counts.num_cached + counts.num_used
    if total != num_blocks or min(counts.num_free, counts.num_cached, counts.num_used) < 0:
        raise InternalError(f"blocks are not conserved: {counts} of {num_blocks}")


def check_references(free_blocks: Sequence[int], reference_counts: Sequence[int], tables: Iterable[BlockTable]) -> None:
    """A block's reference count is the number of tables that hold it; a free block has none and is free once."""
    held = Counter(block for table in tables for block in table.blocks)
    free = Counter(free_blocks)
    for block, num_references in enumerate(reference_counts):
        if held[block] != num_references:
            raise InternalError(f"block {block} has {num_references} references but {held[block]} tables hold it")
        if free[block] != (1 if num_references == 0 else 0):
            raise InternalError(f"block {block} is {free[block]} times free with {num_references} references")


def check_locks(
    lock_counts: Sequence[int], counts: BlockCounts, tables: Iterable[BlockTable], running: Iterable[BlockTable]
) -> None:
    """A block has a lock for each table of a running sequence that holds it; those held without any are cached."""
    locked = Counter(block for table in running for block in table.blocks)
    for block, num_locks in enumerate(lock_counts):
        if locked[block] != num_locks:
            raise InternalError(f"block {block} has {num_locks} locks but {locked[block]} running sequences hold it")
    num_cached = len({block for table in tables for block in table.blocks} - locked.keys())
    if counts.num_cached != num_cached or counts.num_used != len(locked):
        raise InternalError(f"{counts}, but {num_cached} blocks are cached and {len(locked)} used")


def check_known(
    known: Mapping[int, int],
    cached: Collection[int],
    tables: Mapping[int, BlockTable],
    running: Iterable[BlockTable],
) -> None:
    """The tree knows exactly the tables. A running one covers the tokens known of it, a cached one is just those."""
    running_ids = {table.seq_id for table in running}
    if known.keys() != tables.keys() or running_ids & set(cached) or running_ids | set(cached) != known.keys():
        raise InternalError(f"the tree knows {sorted(known)}, cached {sorted(cached)}, running {sorted(running_ids)}")
    for seq_id, num_tokens in known.items():
        length = tables[seq_id].length
        if length < num_tokens or (seq_id in cached and length > num_tokens):
            raise InternalError(f"sequence id {seq_id} has a table of {length} tokens, {num_tokens} are known")


def check_tables(tables: Iterable[BlockTable], block_tokens: int) -> None:
    """Each table has exactly the blocks that its length needs, no block twice."""
    for table in tables:
        if len(table.blocks) != -(-table.length // block_tokens):
            raise InternalError(f"{len(table.blocks)} blocks of {block_tokens} do not fit {table.length} tokens")
        if len(set(table.blocks)) != len(table.blocks):
            raise InternalError(f"sequence id {table.seq_id} holds a block twice")


def check_seq_ids(free_ids: Iterable[int], tables: Iterable[BlockTable], num_ids: int) -> None:
    """Each sequence id is either free, once, or held by exactly one table."""
    seen = Counter(free_ids)
    seen.update(table.seq_id for table in tables)
    if len(seen) != num_ids or any(count != 1 for count in seen.values()):
        raise InternalError(f"sequence ids are not conserved: {dict(seen)} of {num_ids}")


def check_coverage(tables: Mapping[int, BlockTable], lengths: Mapping[int, int]) -> None:
    """Exactly the live sequences have tables, and each table covers what its sequence has in the cache."""
    if tables.keys() != lengths.keys():
        raise InternalError(f"tables of {sorted(tables)} but live sequences {sorted(lengths)}")
    for key, length in lengths.items():
        if tables[key].length < length:
            raise InternalError(f"sequence {key} has {length} tokens computed, its table covers {tables[key].length}")
