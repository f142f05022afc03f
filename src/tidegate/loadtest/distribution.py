"""Distributions of measured times: exact percentiles, and curves to draw. Pure."""

from collections.abc import Sequence

import msgspec
import numpy as np

PERCENTILES = (50, 90, 95, 99)
CURVE_POINTS = 120


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Of `count` values. Percentiles lie between neighbours where they fall between them (numpy's `linear`)."""

    count: int
    mean: float
    min: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


def describe(values: Sequence[float]) -> Distribution | None:
    """Returns the distribution; None of nothing."""
    if not values:
        return None
    numbers = np.asarray(values, dtype=np.float64)
    found = [float(value) for value in np.percentile(numbers, PERCENTILES)]
    return Distribution(
        count=len(numbers),
        mean=float(numbers.mean()),
        min=float(numbers.min()),
        p50=found[0],
        p90=found[1],
        p95=found[2],
        p99=found[3],
        max=float(numbers.max()),
    )


def curve(values: Sequence[float]) -> list[tuple[float, float]]:
    """Returns points (value, share of values up to it) of the cumulative distribution, many of them at its tail."""
    if not values:
        return []
    numbers = np.sort(np.asarray(values, dtype=np.float64))
    even = np.linspace(0.0, 1.0, CURVE_POINTS * 3 // 4)
    tail = 1.0 - np.logspace(-1, -4, CURVE_POINTS // 4)
    shares = np.unique(np.concatenate([even, tail]))
    return [(float(value), float(share)) for value, share in zip(np.quantile(numbers, shares), shares, strict=True)]


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """One number over several runs."""

    median: float
    low: float
    high: float


def spread_of(values: Sequence[float]) -> Spread | None:
    """Returns the spread; None of nothing."""
    if not values:
        return None
    return Spread(median=float(np.median(values)), low=min(values), high=max(values))
