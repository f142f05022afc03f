"""Scales of plots: from values to places, and where ticks stand. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

_STEPS = (1, 2, 5, 10)
LOG_FROM = 30.0
"""Values that span more than this factor are drawn on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Scale:
    """From `low`..`high` to `start`..`end`. Logarithmic ones hold positive values only."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def place(self, value: float) -> float:
        """Returns where a value stands; values outside stand at the edge."""
        value = min(max(value, self.low), self.high)
        if self.is_log:
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Returns round values inside the scale, about `count`."""
        if self.is_log:
            marks = [
                m * 10.0**power
                for power in range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
                for m in (1, 2, 5)
            ]
            inside = [mark for mark in marks if self.low * 0.999 <= mark <= self.high * 1.001]
            return (
                inside if len(inside) <= count + 1 else [m for m in inside if f"{m:e}".startswith("1")] or inside[::3]
            )
        step = _round_up((self.high - self.low) / count)
        first = ceil(self.low / step - 1e-9)
        return [step * number for number in range(first, floor(self.high / step + 1e-9) + 1)]


def _round_up(raw: float) -> float:
    power = 10.0 ** floor(log10(raw))
    return next(step * power for step in _STEPS if step * power >= raw * 0.999)


def scale_from_zero(values: Sequence[float], start: float, end: float) -> Scale:
    """Returns a linear scale from 0 to a round number at or above all values."""
    top = max(values, default=0.0) or 1.0
    step = _round_up(top / 4)
    return Scale(0.0, step * ceil(top / step - 1e-9), start, end)


def scale_of_times(values: Sequence[float], start: float, end: float) -> Scale:
    """Returns a scale for times: linear from 0, or logarithmic where they span orders of magnitude."""
    positive = [value for value in values if value > 0]
    if positive and max(positive) > LOG_FROM * min(positive):
        low = max(min(positive), max(positive) / 1e5)
        return Scale(low, max(positive) * 1.05, start, end, is_log=True)
    return scale_from_zero(values, start, end)
