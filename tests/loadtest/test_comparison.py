"""Two servers: ratios of neighbours, verdicts, requirements, exit status."""

import pytest

from harness.load_samples import done, failed, run_of, steady
from tidegate.loadtest.comparison import MIN_PAIRS, Ratio, compare, order_of, ratios_of
from tidegate.loadtest.metric import METRICS, read_metric
from tidegate.loadtest.requirement import judge, read_requirement
from tidegate.loadtest.run_summary import Run


def runs(*speeds: float) -> list[Run]:
    return [steady(speed, number) for number, speed in enumerate(speeds)]


def ratio_of(name: str, first: list[Run], second: list[Run]) -> Ratio:
    return next(ratio for ratio in compare(first, second) if ratio.metric == name)


def test_the_servers_take_turns_at_being_first() -> None:
    assert [order_of(number) for number in range(4)] == [(0, 1), (1, 0), (0, 1), (1, 0)]


def test_a_ratio_is_that_of_neighbours_and_not_of_medians() -> None:
    # The machine became ten times slower half-way: neighbours do not see it.
    ratio = ratio_of("ttft_p50", runs(1.0, 1.0, 10.0), runs(0.5, 0.4, 5.0))
    assert (ratio.median, ratio.low, ratio.high, ratio.num_pairs) == (2.0, 2.0, 2.5, 3)


def test_runs_without_a_neighbour_or_a_number_do_not_count() -> None:
    assert ratios_of("ttft_p50", runs(1.0, 1.0), runs(2.0)) == [0.5]
    assert ratios_of("ttft_p50", runs(1.0), [run_of(failed(0.0, "timeout"))]) == []
    assert ratios_of("error_share", runs(1.0), runs(1.0)) == [], "nothing is no multiple of nothing"


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ([1.0] * MIN_PAIRS, [2.0] * MIN_PAIRS, "better"),
        ([2.0] * MIN_PAIRS, [1.0] * MIN_PAIRS, "worse"),
        ([1.0] * (MIN_PAIRS - 1) + [3.0], [2.0] * MIN_PAIRS, "unclear"),
        ([1.0] * (MIN_PAIRS - 1), [2.0] * (MIN_PAIRS - 1), "unclear"),
        ([1.0] * MIN_PAIRS, [1.0] * MIN_PAIRS, "unclear"),
    ],
    ids=["faster", "slower", "one run differs", "too few", "alike"],
)
def test_a_verdict_needs_enough_runs_that_agree(first: list[float], second: list[float], verdict: str) -> None:
    assert ratio_of("ttft_p50", runs(*first), runs(*second)).verdict == verdict


def test_more_is_better_of_rates_and_less_of_times() -> None:
    many = [run_of(done(0.0, 1.0), done(0.0, 1.0), number=number) for number in range(MIN_PAIRS)]
    ratio = ratio_of("requests_per_s", many, runs(*[1.0] * MIN_PAIRS))
    assert (ratio.median, ratio.verdict) == (2.0, "better")


def test_numbers_are_read_by_name_of_all_and_of_groups() -> None:
    run = run_of(done(0.0, 1.0, group="a"), done(0.0, 3.0, group="b"), failed(0.0, "timeout", group="b"))
    assert read_metric(run, "ttft_p50") == read_metric(run, "all.ttft_p50") == 2.0
    assert (read_metric(run, "a.ttft_p50"), read_metric(run, "b.ttft_p50")) == (1.0, 3.0)
    assert read_metric(run, "error_share") == pytest.approx(1 / 3)
    assert read_metric(run, "c.ttft_p50") is None
    assert read_metric(run, "goodput_per_s") is None
    with pytest.raises(KeyError):
        read_metric(run, "speed")


@pytest.mark.parametrize(
    ("text", "metric", "bound", "is_met"),
    [
        ("ttft_p50<=2", "ttft_p50", 2.0, True),
        ("ttft_p50 <= 1999.9ms", "ttft_p50", 1.9999, False),
        ("ttft_p50>=2", "ttft_p50", 2.0, True),
        ("requests_per_s>=0.2", "requests_per_s", 0.2, False),
        ("short.ttft_p99<=1e-3", "short.ttft_p99", 0.001, None),
        ("short.itl_max<=2", "short.itl_max", 2.0, None),
    ],
)
def test_a_requirement_bounds_the_median_of_the_runs(text: str, metric: str, bound: float, is_met: bool | None) -> None:
    requirement = read_requirement(text)
    assert (requirement.metric, requirement.bound) == (metric, pytest.approx(bound))
    judged = judge(requirement, runs(1.0, 2.0, 3.0), None)
    assert judged.is_met is is_met
    assert not judged.is_ratio


def test_of_two_servers_the_ratio_is_required() -> None:
    judged = judge(read_requirement("ttft_p50<=1.0"), runs(1.0, 9.0, 1.0), runs(2.0, 3.0, 2.0))
    assert judged.is_met is True
    assert judged.is_ratio
    assert not judged.is_sure
    assert judged.measured is not None
    assert (judged.measured.median, judged.measured.high) == (0.5, 3.0)
    sure = judge(read_requirement("ttft_p50<=1.0"), runs(*[1.0] * MIN_PAIRS), runs(*[2.0] * MIN_PAIRS))
    assert sure.is_sure


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ttft_p50", "is no requirement"),
        ("ttft_p50<1", "is no requirement"),
        ("ttft_p50<=fast", "is no requirement"),
        ("ttft_p51<=1", "no number is called ttft_p51"),
        ("ttft_p50<=1.2.3", "is no number"),
        ("requests_per_s>=3ms", "is no time"),
    ],
)
def test_other_requirements_are_refused_with_what_would_do(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_requirement(text)


def test_every_metric_has_a_name_a_label_and_a_direction() -> None:
    assert len({metric.label for metric in METRICS.values()}) == len(METRICS)
    assert [name for name, metric in METRICS.items() if metric.unit == "s" and metric.is_more_better] == []
