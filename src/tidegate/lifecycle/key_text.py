"""The text of an API key: how one is made, what it is stored as, and what its public part is.

`tg_` + 8 characters that name the key in public + `_` + 43 characters that hold 256 random bits. Only a SHA-256 digest
of the whole is ever stored. A slow, salted hash would add nothing: it protects secrets that can be guessed, and 2^256
values cannot be tried, however fast each try is. It would make every request slow instead.
"""

import hashlib

from tidegate.ids import mint_id

ID_PREFIX = "key_"
KEY_PREFIX = "tg_"
KEY_ENTROPY_BYTES = 40
"""8 for the public part, 32 for the secret."""
DIGEST_BYTES = 32

_NUM_ID_CHARS = 8
_NUM_SECRET_CHARS = 43
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def make_key(entropy: bytes) -> tuple[str, str]:
    """Returns a key's public id (`key_...`) and the key itself. `entropy` is KEY_ENTROPY_BYTES unpredictable bytes."""
    if len(entropy) != KEY_ENTROPY_BYTES:
        raise ValueError(f"a key is made of {KEY_ENTROPY_BYTES} bytes, not {len(entropy)}")
    public = mint_id("", entropy[:_NUM_ID_CHARS])
    return ID_PREFIX + public, f"{KEY_PREFIX}{public}_{_spell(entropy[_NUM_ID_CHARS:])}"


def digest_of(credential: str) -> bytes:
    """Returns what is stored of a key and compared: 32 bytes, whatever the length of the key."""
    return hashlib.sha256(credential.encode("utf-8", "surrogatepass")).digest()


def _spell(secret: bytes) -> str:
    # Not one character for each byte: 256 is no multiple of 62, and some characters would be likelier than others.
    number = int.from_bytes(secret, "big")
    characters: list[str] = []
    for _ in range(_NUM_SECRET_CHARS):
        number, digit = divmod(number, len(_BASE62))
        characters.append(_BASE62[digit])
    return "".join(characters)
