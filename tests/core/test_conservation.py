"""The long run of `bench/conservation.py`, short: everything that disturbs an engine, and its laws at each step."""

import pytest

from tidegate.testing.conservation_run import ConservationRun, RunTally

ROUNDS = 4


@pytest.fixture(scope="module")
def tally() -> RunTally:
    run = ConservationRun(seed=7)
    for _ in range(ROUNDS):
        run.run_round()
    return run.tally


def test_some_thousand_steps_break_no_law(tally: RunTally) -> None:
    assert tally.num_steps >= 1000 * ROUNDS
    assert tally.num_compared > 10


@pytest.mark.parametrize("act", ["abort", "hold", "flush", "preemptions", "cached_tokens", "accepted"])
def test_the_run_has_met_everything_that_it_is_about(tally: RunTally, act: str) -> None:
    assert tally.counts[act] > 10
