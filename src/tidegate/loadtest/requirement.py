"""Requirements: what must hold for the exit status to be 0, like `ttft_p50<=0.5`. Pure.

Of one server, a bound on the median over its runs; of two, on the median of their ratios.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tidegate.loadtest.comparison import MIN_PAIRS, ratios_of
from tidegate.loadtest.distribution import Spread, spread_of
from tidegate.loadtest.metric import METRICS, metric_of, read_metric
from tidegate.loadtest.run_summary import Run

_FORM = re.compile(r"\s*([\w.-]+)\s*(<=|>=)\s*([0-9.]+(?:e-?\d+)?)\s*(ms)?\s*")


@dataclass(frozen=True, slots=True)
class Requirement:
    """`is_most`: the bound is the most that is allowed, else the least. `is_time`: it was given in milliseconds."""

    text: str
    metric: str
    is_most: bool
    bound: float
    is_time: bool = False


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """`is_met`: None where nothing was measured, which counts as not met. `is_sure`: all runs say the
    same, and there are enough of them. `is_ratio`: `measured` is one.
    """

    text: str
    measured: Spread | None
    is_met: bool | None
    is_sure: bool
    is_ratio: bool


def read_requirement(text: str) -> Requirement:
    """Returns what `text` requires. Raises ValueError, saying what would do."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no requirement; one looks like ttft_p50<=0.5 or requests_per_s>=2")
    name, operator, number, unit = found.groups()
    try:
        metric = metric_of(name)
        bound = float(number)
    except KeyError:
        raise ValueError(f"{text!r}: no number is called {name}; there are {', '.join(METRICS)}") from None
    except ValueError:
        raise ValueError(f"{text!r}: {number} is no number") from None
    if unit and metric.unit != "s":
        raise ValueError(f"{text!r}: {name} is no time")
    return Requirement(text, name, operator == "<=", bound / 1000 if unit else bound, bool(unit))


def judge(requirement: Requirement, first: Sequence[Run], second: Sequence[Run] | None) -> Judged:
    """Returns whether the requirement holds. `second`: the runs of the server that is compared with, if one is."""
    if second is None:
        found = [read_metric(run, requirement.metric) for run in first]
        values = [value for value in found if value is not None]
    else:
        values = ratios_of(requirement.metric, first, second)
    spread = spread_of(values)
    if spread is None:
        return Judged(text=requirement.text, measured=None, is_met=None, is_sure=False, is_ratio=second is not None)
    met = [_holds(requirement, value) for value in (spread.median, spread.low, spread.high)]
    return Judged(
        text=requirement.text,
        measured=spread,
        is_met=met[0],
        is_sure=len(values) >= MIN_PAIRS and len(set(met)) == 1,
        is_ratio=second is not None,
    )


def _holds(requirement: Requirement, value: float) -> bool:
    return value <= requirement.bound if requirement.is_most else value >= requirement.bound
