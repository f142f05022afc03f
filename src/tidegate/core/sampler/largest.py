"""The k largest of a row without sorting it."""

import numpy as np
import numpy.typing as npt

from tidegate.core.backend import Float32Array
from tidegate.core.sampler.weights import IndexArray

BoolArray = npt.NDArray[np.bool_]

_GROUP = 64


def largest(values: Float32Array, count: int) -> IndexArray:
    """Returns the positions of the `count` largest of `values`, ascending. Of equal values the lower position wins.

    `values` has shape [n] and holds no NaN. All positions come back where `count` is n or more.
    """
    if count >= values.size:
        return np.arange(values.size)
    pool = _pool(values, count)
    inside = values if pool is None else values[pool]
    if inside.size == count and pool is not None:
        return pool
    place = inside.size - count
    kept = np.flatnonzero(at_least(inside, float(np.partition(inside, place)[place]), count))
    return kept if pool is None else pool[kept]


def at_least(values: Float32Array, cut: float, count: int) -> BoolArray:
    """Returns where `values` is above `cut`, and where the first that equal it are: `count` places in all."""
    above = values > np.float32(cut)
    wanted = count - int(np.count_nonzero(above))
    above[np.flatnonzero(values == np.float32(cut))[:wanted]] = True
    return above


def _pool(values: Float32Array, count: int) -> IndexArray | None:
    """Returns positions, few as a rule, that surely include the `count` largest; None for no saving.

    The row is cut into groups. The `count` groups with the highest maxima hold `count` values at least as large as
    the lowest of these maxima, and so no value below that can be among the largest.
    """
    num_groups = values.size // _GROUP
    if count * 4 > num_groups:
        return None
    maxima = values[: num_groups * _GROUP].reshape(_GROUP, num_groups).max(axis=0)
    place = num_groups - count
    bound = np.partition(maxima, place)[place]
    return np.flatnonzero(values >= bound)
