"""Narrowing: temperature, top-k, top-p and min-p, from logits to the weights of the tokens that may be drawn.

No row is sorted whole. Top-k bounds its candidates by group maxima; top-p starts from the tokens that can be in the
nucleus at all and halves them by partition; min-p alone compares logits.

Ties: a cut that falls between equal weights keeps the lower token ids. The most likely token is always kept.
"""

import math
from dataclasses import dataclass

import numpy as np

from tidegate.core.backend import Float32Array
from tidegate.core.sampler.largest import BoolArray, at_least, largest
from tidegate.core.sampler.weights import IndexArray, Weights, weigh
from tidegate.inference.sampling import SamplingParams

_SORTED_AT_ONCE = 4096
_DENSE = 16
"""Above one in so many kept, dropped candidates get weight zero instead: cheaper than gathering what is kept."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is left to draw from. `positions` are ascending indices of the row, None for all of it.

    A weight of zero means: dropped.
    """

    positions: IndexArray | None
    weights: Weights


def narrow(
    logits: Float32Array, peak: float, params: SamplingParams, scratch: Float32Array, known: Weights | None
) -> Candidates:
    """Applies temperature, top-k, top-p and min-p, in this order.

    `peak` is the largest of `logits` and finite. `known` are the row's weights at this temperature where the caller
    has them already in `scratch`; otherwise they are made there. Top-p is taken of what top-k left, min-p of the most
    likely token's probability.
    """
    positions: IndexArray | None = None
    if 0 < params.top_k < logits.size:
        positions = largest(logits, params.top_k)
    elif params.min_p > 0.0 and params.top_p >= 1.0:
        positions = _not_far_below(logits, peak, params)
    if positions is not None:
        weights = weigh(logits[positions], peak, params.temperature, scratch)
    else:
        weights = known or weigh(logits, peak, params.temperature, scratch)
    if params.top_p < 1.0:
        positions, weights = _nucleus(positions, weights, params.top_p)
    if params.min_p > 0.0:
        positions, weights = _keep(positions, weights.values, weights.values >= np.float32(params.min_p))
    return Candidates(positions, weights)


def _nucleus(positions: IndexArray | None, weights: Weights, top_p: float) -> tuple[IndexArray | None, Weights]:
    """Keeps the fewest candidates, most likely first, whose weights reach `top_p` of the total.

    A token below (1 - top_p) / n of the total is never needed: all such tokens together weigh less than what may be
    left out. Those that remain are searched for the cut.
    """
    values = weights.values
    target = top_p * weights.total
    floor = (weights.total - target) / values.size * (1.0 - 1e-4)  # the slack is for rounding, here and in the sums
    pool = values >= np.float32(floor)
    if int(np.count_nonzero(pool)) * 4 < values.size:
        positions, values = _gather(positions, values, pool)
    cut, count = _cut_at(values.copy(), target)
    return _keep(positions, values, at_least(values, cut, count))


def _cut_at(weights: Float32Array, target: float) -> tuple[float, int]:
    """Returns the smallest weight needed for the largest ones to add up to `target`, and how many these are.

    Reorders `weights`. Halves the part that holds the cut until it is small enough to sort: linear time for any
    distribution.
    """
    part = weights
    mass_above, num_above = 0.0, 0
    while part.size > _SORTED_AT_ONCE:
        middle = part.size // 2
        part.partition(middle)
        upper = part[middle:]
        mass = float(upper.sum(dtype=np.float64))
        if mass_above + mass >= target:
            part = upper
        else:
            mass_above, num_above, part = mass_above + mass, num_above + upper.size, part[:middle]
    part.sort()
    descending = part[::-1]
    reached = mass_above + descending.astype(np.float64).cumsum()
    index = min(int(np.searchsorted(reached, target, side="left")), part.size - 1)
    return float(descending[index]), num_above + index + 1


def _not_far_below(logits: Float32Array, peak: float, params: SamplingParams) -> IndexArray | None:
    """Returns a superset of what min-p keeps, by comparing logits; None where it is too large to save anything."""
    distance = -math.log(params.min_p) * params.temperature
    slack = 1e-4 * (distance + params.temperature) + 1e-6 * abs(peak)
    near = logits >= np.float32(peak - distance - slack)
    return None if int(np.count_nonzero(near)) * _DENSE > logits.size else np.flatnonzero(near)


def _keep(positions: IndexArray | None, values: Float32Array, kept: BoolArray) -> tuple[IndexArray | None, Weights]:
    """Drops the candidates outside `kept`. May change `values`."""
    if int(np.count_nonzero(kept)) * _DENSE > kept.size:
        np.multiply(values, kept, out=values)
    else:
        positions, values = _gather(positions, values, kept)
    return positions, Weights.of(values)


def _gather(positions: IndexArray | None, values: Float32Array, kept: BoolArray) -> tuple[IndexArray, Float32Array]:
    indices = np.flatnonzero(kept)
    return (indices if positions is None else positions[indices]), values[indices]
