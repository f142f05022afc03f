"""Softmax weights of one row, kept with the sums of their blocks so that a draw need not add up the whole row again.

A row is always weighed alone, in one pass over contiguous memory: its sums, to the last bit, cannot depend on the
rows beside it.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.core.backend import Float32Array

Float64Array = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]

BLOCK = 512
"""Weights in a block: long enough for vector sums, short enough that the scan inside one block costs nothing."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Unnormalised probabilities of candidates in order of ascending token id; the largest is 1.0.

    `block_ends[i]` is the sum of the first `i + 1` blocks. Sums inside a block are float32 and pairwise, those over
    blocks float64: the total is right to about 1e-7 of itself.
    """

    values: Float32Array
    block_ends: Float64Array

    @property
    def total(self) -> float:
        return float(self.block_ends[-1])

    @classmethod
    def of(cls, values: Float32Array) -> "Weights":
        """Adds up weights that are already there. `values` has shape [n], n > 0."""
        sums = np.add.reduceat(values, np.arange(0, values.size, BLOCK))
        return cls(values, sums.astype(np.float64).cumsum())


def weigh(logits: Float32Array, peak: float, temperature: float, scratch: Float32Array) -> Weights:
    """Returns exp((logit - peak) / temperature) of each logit, stored in the head of `scratch`.

    `peak` is the largest of `logits`, finite; `temperature` is positive. However small the temperature, nothing
    overflows: differences are at most zero, and what falls below the range of float32 becomes weight zero.
    """
    out = scratch[: logits.size]
    np.subtract(logits, np.float32(peak), out=out)
    if temperature != 1.0:
        np.multiply(out, np.float32(1.0 / max(temperature, 1e-30)), out=out)
    np.exp(out, out=out)
    return Weights.of(out)


def log_total(weights: Weights, peak: float) -> float:
    """Returns the logarithm of the sum of exp(logit), for weights made at temperature 1 with this `peak`."""
    return peak + math.log(weights.total)
