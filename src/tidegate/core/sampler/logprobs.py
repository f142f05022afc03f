"""Raw log-probabilities (CONTRACT.md section 7): the model's own logits, before temperature, bias, penalties, masks."""

import math

import numpy as np

from tidegate.core.backend import Float32Array
from tidegate.core.sampler.largest import largest
from tidegate.inference.output import TokenLogprob

LOWEST = -9999.0
"""Stands for minus infinity, and bounds everything finite."""


def score(logits: Float32Array, log_sum: float, token_id: int, num_top: int) -> TokenLogprob:
    """Returns the log-probability of `token_id` and the `num_top` most likely ids, of equal ones the lower first.

    `log_sum` is the logarithm of the sum of exp(logit) over the row. The row holds no NaN and no plus infinity.
    """
    top: tuple[tuple[int, float], ...] = ()
    if num_top > 0:
        positions = largest(logits, num_top)
        values = logits[positions]
        order = np.argsort(-values, kind="stable")
        pairs = zip(positions[order].tolist(), values[order].tolist(), strict=True)
        top = tuple((best_id, finite_logprob(value - log_sum)) for best_id, value in pairs)
    return TokenLogprob(token_id, finite_logprob(float(logits[token_id]) - log_sum), top)


def finite_logprob(value: float) -> float:
    """Returns a log-probability as the contract allows it: finite, at most zero."""
    if math.isnan(value):
        return LOWEST
    return min(max(value, LOWEST), 0.0)
