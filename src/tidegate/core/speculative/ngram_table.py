"""Where runs of three tokens ended before: hash chains over a text that only grows, as compressors keep them.

Adding a token and finding the newest places of a hash cost constant time, amortised over doublings. Hashes may collide:
whoever asks compares tokens. Memory is 12 bytes for each token and a table of at most four times as many slots.
"""

from array import array
from collections.abc import Iterator

NGRAM = 3
"""Tokens that must agree before anything is guessed."""
_BITS = 32
_MASK = (1 << _BITS) - 1
_FACTORS = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_LEAST_SLOT_BITS = 6


def hash_of(first: int, second: int, third: int) -> int:
    """Returns 32 bits; the high ones depend on all three tokens."""
    return (first * _FACTORS[0] + second * _FACTORS[1] + third * _FACTORS[2]) & _MASK


class NgramTable:
    """Ends of runs by hash. An end is the position behind a run's last token; `first_end` is the first one added."""

    def __init__(self, first_end: int) -> None:
        self._first_end = first_end
        self._hashes = array("I")
        # Both hold an entry's number, counted from 1: 0 stands for none.
        self._previous = array("I")
        self._slot_bits = _LEAST_SLOT_BITS
        self._slots = array("I", bytes(4 << _LEAST_SLOT_BITS))

    @property
    def next_end(self) -> int:
        """The end that `add` is to be given next."""
        return self._first_end + len(self._hashes)

    @property
    def num_bytes(self) -> int:
        return 4 * (len(self._hashes) + len(self._previous) + len(self._slots))

    def add(self, hashed: int) -> None:
        """Adds the run that ends at `next_end`."""
        self._hashes.append(hashed)
        if len(self._hashes) > len(self._slots):
            self._widen()
        else:
            self._link(hashed)

    def ends(self, hashed: int) -> Iterator[int]:
        """Yields the ends of runs with this hash, and of some others, newest first."""
        entry = self._slots[hashed >> (_BITS - self._slot_bits)]
        while entry:
            if self._hashes[entry - 1] == hashed:
                yield self._first_end + entry - 1
            entry = self._previous[entry - 1]

    def _link(self, hashed: int) -> None:
        slot = hashed >> (_BITS - self._slot_bits)
        self._previous.append(self._slots[slot])
        self._slots[slot] = len(self._previous)

    def _widen(self) -> None:
        self._slot_bits += 2
        self._slots = array("I", bytes(4 << self._slot_bits))
        self._previous = array("I")
        for hashed in self._hashes:
            self._link(hashed)
