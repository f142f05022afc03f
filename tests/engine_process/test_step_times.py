"""StepTimes: which kind of step the engine's time went into."""

import pytest

from tidegate.core.step import EngineCore
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import AddRequest, StepOutputs
from tidegate.engine_process.step_times import StepTimes
from tidegate.engine_process.switchboard import Switchboard
from tidegate.testing.engine_pair import simulated_core
from tidegate.testing.requests import make_request

STEPS = [
    # steps, prefill tokens and the step's tokens after it, its seconds, and what has been counted then
    (1, 100, 100, 0.5, (0.5, 1, 0, 0.0, 0)),
    (2, 100, 3, 0.25, (0.5, 1, 0, 0.25, 1)),
    (3, 164, 67, 1.0, (1.5, 2, 1, 0.25, 1)),
    (3, 164, 0, 9.0, (1.5, 2, 1, 0.25, 1)),
    (4, 164, 1, 0.125, (1.5, 2, 1, 0.375, 2)),
]


def counted(gauges: EngineGauges) -> tuple[float, int, int, float, int]:
    return (
        gauges.prefill_steps_s,
        gauges.num_prefill_steps,
        gauges.num_mixed_steps,
        gauges.decode_steps_s,
        gauges.num_decode_steps,
    )


def test_each_step_counts_as_what_it_carried_and_an_empty_one_as_nothing() -> None:
    times = StepTimes()
    for num_steps, num_prefill, num_tokens, seconds, expected in STEPS:
        gauges = EngineGauges(num_steps=num_steps, num_prefill_tokens=num_prefill, num_step_tokens=num_tokens)
        times.note(gauges, seconds)
        told = times.add_to(gauges)
        assert counted(told) == pytest.approx(expected)
        assert told.step_s == seconds


def test_clients_hear_where_the_time_went() -> None:
    core: EngineCore
    core, model = simulated_core()
    board = Switchboard(core, 1, model)
    board.join(1)
    board.receive(1, AddRequest(make_request("a", "hello", max_tokens=4)), 0.0)
    last: StepOutputs | None = None
    while core.next_wake_at(0.0) is not None:
        for _, outputs in board.route(core.step(0.0), 0.25):
            last = outputs
    assert last is not None
    assert counted(last.gauges) == (0.25, 1, 0, 0.75, 3)
