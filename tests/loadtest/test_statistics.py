"""From samples to numbers: percentiles, gaps, rates, goodput, counts."""

from typing import Any

import numpy as np
import pytest

from harness.load_samples import done, failed, run_of
from tidegate.loadtest.distribution import curve, describe, spread_of
from tidegate.loadtest.metric import metric_of, read_metric
from tidegate.loadtest.run_summary import MAX_DETAILS, TIMELINE_POINTS
from tidegate.loadtest.sample import Sample
from tidegate.loadtest.slo import Slo


def test_percentiles_lie_between_their_neighbours() -> None:
    found = describe([4.0, 1.0, 3.0, 2.0])
    assert found is not None
    assert (found.count, found.mean, found.min, found.max) == (4, 2.5, 1.0, 4.0)
    assert (found.p50, found.p90, found.p95, found.p99) == pytest.approx((2.5, 3.7, 3.85, 3.97))
    one = describe([7.0])
    assert one is not None
    assert (one.p50, one.p99) == (7.0, 7.0)
    assert describe([]) is None


@pytest.mark.parametrize("count", [2, 3, 10, 99, 100, 1001])
def test_percentiles_are_those_of_numpy(count: int) -> None:
    values = np.random.Generator(np.random.PCG64(count)).exponential(size=count)
    found = describe(values.tolist())
    assert found is not None
    ranked = np.sort(values)
    for percentile, value in ((50, found.p50), (90, found.p90), (95, found.p95), (99, found.p99)):
        place = (count - 1) * percentile / 100
        below = int(place)
        above = min(below + 1, count - 1)
        assert value == pytest.approx(ranked[below] + (ranked[above] - ranked[below]) * (place - below))


def test_a_curve_rises_from_the_least_to_the_most() -> None:
    points = curve([3.0, 1.0, 2.0])
    assert points[0] == (1.0, 0.0)
    assert points[-1] == (3.0, 1.0)
    assert points == sorted(points)
    assert curve([]) == []


def test_a_spread_is_median_and_ends() -> None:
    found = spread_of([3.0, 1.0, 2.0, 10.0])
    assert found is not None
    assert (found.median, found.low, found.high) == (2.5, 1.0, 10.0)
    assert spread_of([]) is None


def test_times_count_from_when_a_request_was_due() -> None:
    sample = done(1.0, 3.0, 3.5, 4.5, num_tokens=5)
    sample.sent_at = 2.0
    assert sample.ttft_s == 2.0
    assert sample.gaps_s == [0.5, 1.0]
    assert sample.tpot_s == 1.5 / 4
    assert sample.e2e_s == 3.5
    empty = done(1.0)
    assert (empty.ttft_s, empty.tpot_s, empty.gaps_s) == (None, None, [])


@pytest.mark.parametrize(
    ("slo", "is_good"),
    [
        (Slo(ttft_s=2.0), True),
        (Slo(ttft_s=1.99), False),
        (Slo(itl_s=1.0), True),
        (Slo(itl_s=0.99), False),
        (Slo(tpot_s=0.75), True),
        (Slo(tpot_s=0.74), False),
        (Slo(e2e_s=3.5), True),
        (Slo(e2e_s=3.49), False),
        (Slo(ttft_s=2.0, itl_s=1.0, tpot_s=0.75, e2e_s=3.5), True),
        (Slo(ttft_s=2.0, itl_s=1.0, tpot_s=0.75, e2e_s=3.0), False),
    ],
    ids=lambda value: repr(value),
)
def test_a_good_request_is_within_every_bound(slo: Slo, is_good: bool) -> None:
    assert slo.is_met(done(1.0, 3.0, 3.5, 4.5)) is is_good


def test_neither_failed_nor_unfinished_nor_empty_requests_are_good() -> None:
    slo = Slo(ttft_s=100.0)
    assert not slo.is_met(failed(0.0, "http_500"))
    assert not slo.is_met(Sample(group="all", due_at=0, sent_at=0, token_at=[1.0]))
    assert not slo.is_met(done(0.0))
    assert Slo(itl_s=1.0).is_met(done(0.0, 1.0)), "one piece has no gap"


def test_a_run_counts_what_became_of_its_requests() -> None:
    samples = (
        done(0.0, 1.0, 2.0, num_prompt_tokens=10, num_cached_tokens=4, is_counted_by_server=True),
        done(0.0, 1.0, 3.0, 4.0, num_tokens=6, num_prompt_tokens=12, is_counted_by_server=True),
        failed(0.0, "http_503", "busy"),
        failed(1.0, "http_503", "later"),
        failed(1.0, "stream_cut"),
        Sample(group="all", due_at=9.0, sent_at=9.0, token_at=[9.5]),
    )
    run = run_of(*samples, slo=Slo(e2e_s=3.0), client_cpu_s=2.0)
    total = run.total
    assert (total.num_requests, total.num_done, total.num_errors, total.num_unfinished) == (6, 2, 3, 1)
    assert total.errors == {"http_503": 2, "stream_cut": 1}
    assert run.details["http_503"] == "busy"
    assert (total.prompt_tokens, total.cached_tokens, total.output_tokens, total.num_pieces) == (22, 4, 8, 5)
    assert (total.requests_per_s, total.output_tokens_per_s) == pytest.approx((0.2, 0.8))
    assert (total.num_good, total.goodput_per_s) == (1, pytest.approx(0.1))
    assert total.itl_s is not None
    assert (total.itl_s.count, total.itl_s.max) == (3, 2.0)
    assert (run.counted_by, run.client_cpu, run.late_s, run.groups) == ("usage", pytest.approx(0.2), None, [])


@pytest.mark.parametrize(
    ("counted", "told"),
    [([True, True], "usage"), ([False, False], "pieces"), ([True, False], "both"), ([], "pieces")],
    ids=["all", "none", "some", "no requests"],
)
def test_a_run_says_who_counted_its_tokens(counted: list[bool], told: str) -> None:
    assert run_of(*(done(0.0, 1.0, is_counted_by_server=each) for each in counted)).counted_by == told


def test_the_longest_gap_is_of_any_request_and_of_a_group() -> None:
    run = run_of(
        done(0.0, 1.0, 1.1, 1.3, group="short"), done(0.0, 1.0, 6.0, group="long"), done(0.0, 1.0, group="one")
    )
    names = ("itl_max", "short.itl_max", "long.itl_max", "one.itl_max")
    assert [read_metric(run, name) for name in names] == [5.0, pytest.approx(0.2), 5.0, None]
    assert not metric_of("short.itl_max").is_more_better


def test_groups_are_told_apart_only_where_there_are_several() -> None:
    run = run_of(done(0.0, 1.0, group="short"), done(0.0, 4.0, group="long"))
    assert [group.name for group in run.groups] == ["long", "short"]
    firsts = [group.ttft_s.p50 for group in run.groups if group.ttft_s is not None]
    assert firsts == [4.0, 1.0]
    assert run_of(done(0.0, 1.0, group="short")).groups == []


def test_the_course_of_a_run_holds_every_piece_and_who_was_running() -> None:
    run = run_of(done(0.0, 0.5, 9.9), done(5.0, 6.0, 7.0))
    assert len(run.timeline) == TIMELINE_POINTS
    width = run.duration_s / TIMELINE_POINTS
    assert sum(moment.pieces_per_s * width for moment in run.timeline) == pytest.approx(4)
    by_time: dict[float, Any] = {round(moment.at_s, 3): moment.in_flight for moment in run.timeline}
    assert (by_time[4.0], by_time[6.0], by_time[8.0]) == (1, 2, 1)


def test_an_open_loop_tells_how_late_requests_left() -> None:
    late = done(1.0, 2.0)
    late.sent_at = 1.25
    run = run_of(late, failed(0.0, "not_sent"), is_open_loop=True)
    assert run.late_s is not None
    assert (run.late_s.count, run.late_s.max) == (1, 0.25)


def test_of_each_kind_of_error_one_is_told_and_of_many_kinds_some() -> None:
    run = run_of(*(failed(0.0, f"http_{400 + n % 30}", f"{n}") for n in range(60)))
    assert run.total.num_errors == 60
    assert len(run.total.errors) == 30
    assert run.details == {f"http_{400 + n}": f"{n}" for n in range(MAX_DETAILS)}
