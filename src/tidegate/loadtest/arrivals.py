"""When an open loop sends: schedules of arrivals, in seconds from the run's start. Pure."""

from collections.abc import Iterator
from enum import Enum

from tidegate.loadtest.dice import Dice


class Arrival(Enum):
    """`POISSON`: independent callers. `FIXED`: one every 1/rate seconds."""

    POISSON = "poisson"
    FIXED = "fixed"


def schedule_arrivals(arrival: Arrival, rate: float, dice: Dice) -> Iterator[float]:
    """Yields instants, without end. The first arrival of a fixed rate is at 0; of a Poisson process, a wait later.

    Raises ValueError where the rate is not positive.
    """
    if rate <= 0:
        raise ValueError(f"a rate of {rate:g} arrivals a second is none")
    at, number = 0.0, 0
    while True:
        if arrival is Arrival.POISSON:
            at += dice.wait(rate)
            yield at
        else:
            yield number / rate
            number += 1
