"""Beginnings of prompts: what is alike, and what an engine still has of them."""

import numpy as np
import pytest

from tidegate.engines.pool.prefix_hash import BLOCK_TOKENS, MAX_BLOCKS, block_hashes
from tidegate.engines.pool.prefix_memory import PrefixMemory


def tokens(*numbers: int) -> bytes:
    return np.array(numbers, dtype="<u4").tobytes()


BASE = list(range(BLOCK_TOKENS * 3))


def test_prompts_share_as_many_hashes_as_whole_blocks() -> None:
    base = block_hashes(tokens(*BASE))
    assert len(base) == 3
    longer = block_hashes(tokens(*BASE, *range(BLOCK_TOKENS), 5))
    assert (longer[:3], len(longer)) == (base, 4)
    forked = block_hashes(tokens(*BASE[:BLOCK_TOKENS], *reversed(BASE[BLOCK_TOKENS:])))
    assert forked[0] == base[0]
    assert not set(forked[1:]) & set(base)
    assert block_hashes(tokens(*BASE[: BLOCK_TOKENS - 1])) == ()


def test_a_salt_and_a_block_that_stands_elsewhere_make_a_difference() -> None:
    plain, salted = block_hashes(tokens(*BASE)), block_hashes(tokens(*BASE), b"key")
    assert not set(plain) & set(salted)
    assert block_hashes(tokens(*BASE), b"key") == salted
    moved = block_hashes(tokens(*BASE[BLOCK_TOKENS:]))
    assert not set(moved) & set(plain)


def test_hashes_do_not_depend_on_the_process() -> None:
    assert block_hashes(tokens(*BASE[:BLOCK_TOKENS]))[0].hex() == "4ee2c85544e4c586"


def test_a_very_long_prompt_is_looked_at_up_to_a_bound() -> None:
    prompt = np.zeros(BLOCK_TOKENS * (MAX_BLOCKS + 5), dtype="<u4").tobytes()
    assert len(block_hashes(prompt)) == MAX_BLOCKS


def test_what_was_read_is_matched_up_to_the_first_difference() -> None:
    memory = PrefixMemory()
    base = block_hashes(tokens(*BASE))
    assert memory.match(base) == 0
    memory.insert(base)
    assert memory.match(base) == 3 * BLOCK_TOKENS
    assert memory.match(block_hashes(tokens(*BASE[: BLOCK_TOKENS * 2], *BASE))) == 2 * BLOCK_TOKENS
    memory.forget()
    assert (memory.match(base), len(memory)) == (0, 0)


@pytest.mark.parametrize(("num_cache_tokens", "num_kept"), [(BLOCK_TOKENS * 2, 2), (0, 1), (10**9, 4)])
def test_no_more_is_remembered_than_a_cache_could_hold_and_ends_go_before_beginnings(
    num_cache_tokens: int, num_kept: int
) -> None:
    memory = PrefixMemory(max_prefixes=4)
    hashes = block_hashes(tokens(*BASE, *BASE))
    memory.insert(hashes)
    memory.resize(num_cache_tokens)
    memory.insert(hashes)
    assert len(memory) == num_kept
    assert memory.match(hashes) == num_kept * BLOCK_TOKENS


def test_what_was_used_last_stays() -> None:
    memory = PrefixMemory(max_prefixes=2)
    one, two, three = (block_hashes(tokens(*[number] * BLOCK_TOKENS)) for number in (1, 2, 3))
    for hashes in (one, two, one, three):
        memory.insert(hashes)
    assert [memory.match(hashes) for hashes in (one, two, three)] == [BLOCK_TOKENS, 0, BLOCK_TOKENS]
