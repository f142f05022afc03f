"""Histogram against counting by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.observability.histogram import Histogram

BOUNDS = (0.5, 1.0, 10.0)


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 0.75, 1.0, 9.0, 10.0, 11.0]), st.integers(1, 4))))
def test_each_bucket_counts_what_is_at_or_below_its_bound(values: list[tuple[float, int]]) -> None:
    histogram = Histogram(BOUNDS)
    for value, weight in values:
        histogram.observe(value, weight)
    repeated = [value for value, weight in values for _ in range(weight)]
    expected = [(str(bound), float(sum(value <= bound for value in repeated))) for bound in BOUNDS]
    assert histogram.cumulative() == [*expected, ("+Inf", float(len(repeated)))]
    assert histogram.sum == pytest.approx(sum(repeated))
    assert histogram.count == len(repeated)


@pytest.mark.parametrize("bounds", [(), (1.0, 1.0), (2.0, 1.0)])
def test_bounds_must_rise(bounds: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="must rise"):
        Histogram(bounds)
