"""Dice and schedules: repeatable, and of the rate that was asked for."""

from itertools import islice
from statistics import mean, variance

import pytest

from tidegate.loadtest.arrivals import Arrival, schedule_arrivals
from tidegate.loadtest.dice import Dice


def schedule(arrival: Arrival, rate: float, seed: int, count: int) -> list[float]:
    return list(islice(schedule_arrivals(arrival, rate, Dice(seed, "arrivals")), count))


def test_the_same_seed_and_names_give_the_same_throws() -> None:
    throws = [[Dice(*key).unit() for _ in range(3)] for key in ((1, "a", 2), (1, "a", 2), (2, "a", 2), (1, "b", 2))]
    assert throws[0] == throws[1]
    assert len({tuple(each) for each in throws}) == 3
    assert len({Dice(1, "a", index).unit() for index in range(200)}) == 200


def test_dice_never_throw_the_same_in_another_process() -> None:
    # Pinned: prompts of a seed must not change with a version of Python, numpy or the hash seed.
    assert [Dice(7, "load", number).below(1000) for number in range(4)] == PINNED


PINNED = [568, 12, 744, 124]


def test_numbers_stay_in_their_range_and_reach_its_ends() -> None:
    dice = Dice(3)
    throws = {dice.between(2, 5) for _ in range(200)}
    assert throws == {2, 3, 4, 5}
    assert set(Dice(3).many_below(3, 200)) == {0, 1, 2}
    assert all(0 <= Dice(4, index).unit() < 1 for index in range(100))


def test_a_fixed_rate_is_even_and_begins_at_once() -> None:
    assert schedule(Arrival.FIXED, 4.0, 1, 5) == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_poisson_arrivals_have_the_rate_and_spread_of_a_poisson_process() -> None:
    times = schedule(Arrival.POISSON, 5.0, 1, 20_000)
    waits = [after - before for before, after in zip([0.0, *times], times, strict=False)]
    assert min(waits) > 0
    assert mean(waits) == pytest.approx(0.2, rel=0.03)
    assert variance(waits) == pytest.approx(0.04, rel=0.1)
    assert times == schedule(Arrival.POISSON, 5.0, 1, 20_000)
    assert times[:5] != schedule(Arrival.POISSON, 5.0, 2, 5)


@pytest.mark.parametrize("rate", [0.0, -1.0])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="is none"):
        schedule(Arrival.FIXED, rate, 1, 1)
