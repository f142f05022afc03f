"""Who shares computed beginnings of prompts with whom.

Time tells what is in a cache: whoever may find another's prompt there can guess it, piece by piece. So a request finds
only what was read under its own key, and within a key under its own `cache_salt`. The engine sees neither: it compares
digests.
"""

from hashlib import blake2b

DIGEST_BYTES = 16


def cache_scope(key_id: str, cache_salt: str | None) -> bytes:
    """Returns what two requests must have in common to share; empty where there are no keys, and no salt was given."""
    if not key_id and not cache_salt:
        return b""
    # A NUL cannot stand in an id: no pair of id and salt reads as another one.
    return blake2b(f"{key_id}\0{cache_salt or ''}".encode(), digest_size=DIGEST_BYTES).digest()
