"""The random draw. A number depends on seed, choice and position only: neither neighbours nor preemption change it.

The generator is SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014) with
the position as its counter: a stream's state after n steps is `key + n * gamma`, so any number of it can be had
directly. The key of a stream is itself mixed from seed and choice.
"""

import numpy as np
import numpy.typing as npt

from tidegate.core.sampler.weights import BLOCK, Float64Array, Weights

UInt64Array = npt.NDArray[np.uint64]

_GAMMA = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def stream_key(seed: int, choice: int) -> int:
    """Returns the 64-bit key of one choice's stream. `seed` may be any integer; its low 64 bits count."""
    return _mix(_mix((seed + _GAMMA) & _MASK) + (choice + 1) * _GAMMA)


def uniforms(keys: UInt64Array, positions: UInt64Array) -> Float64Array:
    """Returns for each key its number at that position, in [0, 1), with 53 random bits."""
    state = keys + (positions + np.uint64(1)) * np.uint64(_GAMMA)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(_FIRST)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(_SECOND)
    state ^= state >> np.uint64(31)
    numbers: Float64Array = (state >> np.uint64(11)) * 2.0**-53
    return numbers


def pick(weights: Weights, uniform: float) -> int:
    """Returns the index whose share of the total, laid end to end in order of index, contains `uniform`.

    Finds the block first, then the place inside it. An index of weight zero is never returned.
    """
    ends = weights.block_ends
    target = uniform * float(ends[-1])
    block = _first_above(ends, target)
    start = float(ends[block - 1]) if block else 0.0
    share = (target - start) / (float(ends[block]) - start)
    inner = weights.values[block * BLOCK : (block + 1) * BLOCK].astype(np.float64).cumsum()
    return block * BLOCK + _first_above(inner, share * float(inner[-1]))


def _first_above(sums: Float64Array, target: float) -> int:
    """Returns where running `sums` first exceed `target`; where rounding put it at the very end, the last real step."""
    index = int(np.searchsorted(sums, target, side="right"))
    return index if index < sums.size else int(np.searchsorted(sums, sums[-1], side="left"))


def _mix(value: int) -> int:
    value &= _MASK
    value = ((value ^ (value >> 30)) * _FIRST) & _MASK
    value = ((value ^ (value >> 27)) * _SECOND) & _MASK
    return value ^ (value >> 31)
