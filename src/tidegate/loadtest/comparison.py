"""Two servers that were measured in turns: ratios of neighbouring runs, so that a change of the machine's load in the
meantime stands on both sides of each. Pure.
"""

from collections.abc import Sequence

import msgspec

from tidegate.loadtest.distribution import spread_of
from tidegate.loadtest.metric import METRICS, metric_of, read_metric
from tidegate.loadtest.run_summary import Run

MIN_PAIRS = 5
"""Of so many pairs all agree by chance in one of 16 cases where the servers are alike; of three, in one of four."""


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """The first server's number over the second's: its median over pairs of runs, the lowest and the highest.

    `verdict`: `better` or `worse` where at least `MIN_PAIRS` pairs all say so, else `unclear`.
    """

    metric: str
    median: float
    low: float
    high: float
    num_pairs: int
    verdict: str


def order_of(number: int) -> tuple[int, int]:
    """Returns which server is measured first in a pair of runs, and which then: they take turns at it."""
    return (0, 1) if number % 2 == 0 else (1, 0)


def ratios_of(name: str, first: Sequence[Run], second: Sequence[Run]) -> list[float]:
    """Returns the ratio of each pair of runs of the same number that both have the number, and not 0 below."""
    by_number = {run.number: run for run in second}
    ratios: list[float] = []
    for run in first:
        ours = read_metric(run, name)
        theirs = read_metric(by_number[run.number], name) if run.number in by_number else None
        if ours is not None and theirs:
            ratios.append(ours / theirs)
    return ratios


def compare(first: Sequence[Run], second: Sequence[Run]) -> list[Ratio]:
    """Returns the ratios of all metrics, of the whole and of each group."""
    groups = sorted({group.name for run in (*first, *second) for group in run.groups})
    names = [f"{group}.{metric}" if group else metric for group in ("", *groups) for metric in METRICS]
    found = [_ratio(name, ratios_of(name, first, second)) for name in names]
    return [ratio for ratio in found if ratio is not None]


def _ratio(name: str, ratios: Sequence[float]) -> Ratio | None:
    spread = spread_of(ratios)
    if spread is None:
        return None
    verdict = "unclear"
    if len(ratios) >= MIN_PAIRS and (spread.low > 1 or spread.high < 1):
        verdict = "better" if (spread.low > 1) == metric_of(name).is_more_better else "worse"
    return Ratio(
        metric=name,
        median=spread.median,
        low=spread.low,
        high=spread.high,
        num_pairs=len(ratios),
        verdict=verdict,
    )
