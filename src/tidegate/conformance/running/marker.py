"""Words and numbers that differ between asks, and are the same in every run with the same seed, whatever runs beside.

Pure: a digest of the seed and of what names the request.
"""

import hashlib

_LETTERS = "abcdefghjkmnpqrstuvwxyz"
NUM_LETTERS = 9


def make_marker(seed: int, *names: object) -> str:
    """Returns a word of ten letters, which begins with m."""
    number = int.from_bytes(_digest(seed, names)[:16], "big")
    letters = []
    for _ in range(NUM_LETTERS):
        number, index = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[index])
    return "m" + "".join(letters)


def make_seed(seed: int, *names: object) -> int:
    """Returns a seed for sampling, from 0 to 2**31 - 1."""
    return int.from_bytes(_digest(seed, names)[16:20], "big") >> 1


def _digest(seed: int, names: tuple[object, ...]) -> bytes:
    return hashlib.sha256("\n".join(map(str, (seed, *names))).encode()).digest()
