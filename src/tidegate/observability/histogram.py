"""A histogram for the token path: one bisection over a plain list, no lock, no label look-up."""

from bisect import bisect_left
from itertools import accumulate


class Histogram:
    """Counts values by upper bound, inclusive, with one more bucket for what is above the last. One thread writes."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        if not bounds or list(bounds) != sorted(set(bounds)):
            raise ValueError(f"bounds of a histogram must rise: {bounds}")
        self._bounds = list(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float, weight: int = 1) -> None:
        """Records `value` as often as `weight` says."""
        self._counts[bisect_left(self._bounds, value)] += weight
        self._sum += value * weight

    @property
    def sum(self) -> float:
        return self._sum

    @property
    def count(self) -> int:
        return sum(self._counts)

    def cumulative(self) -> list[tuple[str, float]]:
        """Returns (upper bound, how many values are at or below it), as the exposition formats want them."""
        names = [repr(float(bound)) for bound in self._bounds]
        return list(zip([*names, "+Inf"], map(float, accumulate(self._counts)), strict=True))
