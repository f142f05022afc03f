"""Dice: repeatable numbers. The same seed and names give the same throws, whatever else was thrown before. Pure."""

import zlib
from math import log

import numpy as np


class Dice:
    """A stream of numbers of its own for each seed and each list of names."""

    def __init__(self, seed: int, *names: str | int) -> None:
        words = [zlib.crc32(name.encode()) if isinstance(name, str) else name for name in names]
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))

    def unit(self) -> float:
        """Returns a number of at least 0 and below 1."""
        return float(self._generator.random())

    def below(self, bound: int) -> int:
        """Returns a whole number of at least 0 and below `bound`."""
        return int(self.unit() * bound)

    def many_below(self, bound: int, count: int) -> list[int]:
        """Returns `count` whole numbers of at least 0 and below `bound`."""
        numbers: list[int] = (self._generator.random(count) * bound).astype(int).tolist()
        return numbers

    def between(self, low: int, high: int) -> int:
        """Returns a whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def wait(self, rate: float) -> float:
        """Returns an exponentially distributed time: that between two events of a Poisson process of this rate."""
        return -log(1.0 - self.unit()) / rate
