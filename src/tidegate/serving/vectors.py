"""Arithmetic on what a model makes of a prompt: vectors of 32-bit floats, and the numbers of a head.

Input is finite; so is everything returned. Sums are taken in 64 bits.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def read_floats(data: bytes) -> Floats:
    """Returns little-endian 32-bit floats as an array."""
    return np.frombuffer(data, "<f4")


def shape_embedding(data: bytes, dimensions: int | None, *, normalize: bool) -> Floats:
    """Returns the first `dimensions` components, or all; with `normalize` of length 1, unless all are zero."""
    vector = read_floats(data)[:dimensions]
    if not normalize:
        return vector
    wide = vector.astype(np.float64)
    length = float(np.sqrt(np.dot(wide, wide)))
    return (wide / length).astype("<f4") if length else vector


def cosine(one: bytes, other: bytes) -> float:
    """Returns the cosine of the angle between two vectors, -1 to 1; 0 where one of them is all zeros."""
    a, b = read_floats(one).astype(np.float64), read_floats(other).astype(np.float64)
    lengths = float(np.sqrt(np.dot(a, a)) * np.sqrt(np.dot(b, b)))
    return min(1.0, max(-1.0, float(np.dot(a, b)) / lengths)) if lengths else 0.0


def sigmoid(value: float) -> float:
    """Returns 1 / (1 + e^-value), for any value."""
    if value >= 0:
        return 1.0 / (1.0 + math.exp(-value))
    small = math.exp(value)
    return small / (1.0 + small)


def softmax(values: Sequence[float]) -> list[float]:
    """Returns shares that add up to 1, in proportion to e^value."""
    highest = max(values)
    shares = [math.exp(value - highest) for value in values]
    total = math.fsum(shares)
    return [share / total for share in shares]
