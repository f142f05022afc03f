"""How prompts that begin alike are told from others: a chain of hashes over blocks of token ids.

Two prompts share `n` blocks where their first `n` hashes are equal, and then with the same cache salt: what may not be
shared in an engine's cache counts as different here. Equal in every process, whatever its hash seed.
"""

from hashlib import blake2b

BLOCK_TOKENS = 64
"""A beginning shorter than this is not worth sending a request elsewhere."""
MAX_BLOCKS = 512
"""Blocks that are looked at: 32,768 tokens. What follows decides nothing."""
_BLOCK_BYTES = 4 * BLOCK_TOKENS
_HASH_BYTES = 8


def block_hashes(prompt: bytes, cache_salt: bytes = b"") -> tuple[bytes, ...]:
    """Returns a hash for each whole block of packed token ids; each stands for everything up to its block's end."""
    num_blocks = min(len(prompt) // _BLOCK_BYTES, MAX_BLOCKS)
    chain = blake2b(cache_salt, digest_size=_HASH_BYTES)
    chain.update(len(cache_salt).to_bytes(8, "little"))
    hashes = []
    for i in range(num_blocks):
        chain.update(prompt[i * _BLOCK_BYTES : (i + 1) * _BLOCK_BYTES])
        hashes.append(chain.digest())
    return tuple(hashes)


def affinity(prefix: bytes, name: str) -> bytes:
    """Returns a number for a beginning and an engine: of all engines the one with the greatest is the beginning's home.

    Needs no memory, is the same in every server, and when an engine leaves only its own beginnings move.
    """
    return blake2b(prefix + name.encode(), digest_size=_HASH_BYTES).digest()
