"""Rows that come and go with engines, and a forecast that never expects more than several engines may take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gate_scene import DECLARED, GateScene
from tidegate.errors import QueueFull, RateLimited
from tidegate.lifecycle.admission import AdmissionController, AdmissionLimits
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.engine_load import EngineLoad, Permit
from tidegate.lifecycle.forecast import Forecast
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.quota import KeyQuotas
from tidegate.lifecycle.ticket import Ticket

LIMITS = AdmissionLimits(max_sequences=2, queue_depth=3, queued_tokens=100_000)


def test_who_waits_enters_when_an_engine_joins_and_who_is_in_stays_when_one_leaves() -> None:
    scene = GateScene(LIMITS)
    for i in range(5):
        scene.enter(f"r{i}")
    scene.poll()
    assert len(scene.admitted) == 3, "two rows, and one behind them"
    scene.gate.resize(4, 2)
    scene.poll()
    assert len(scene.admitted) == 5
    scene.gate.resize(1, 1)
    scene.enter("late")
    scene.poll()
    assert len(scene.admitted) == 5
    for i in range(4):
        scene.leave(f"r{i}")
    scene.poll()
    assert "late" not in scene.admitted
    scene.leave("r4")
    scene.poll()
    assert "late" in scene.admitted
    scene.gate.check_integrity()


def test_the_queue_is_as_deep_as_the_rows_that_there_are_allow() -> None:
    scene = GateScene(LIMITS)
    scene.gate.resize(6, 3)
    for i in range(9):
        scene.enter(f"r{i}")
        scene.poll()
    with pytest.raises(QueueFull):
        scene.enter("r9")


def first_token(sizes: list[int], num_engines: int) -> float:
    """The earliest a newcomer's prefill may begin when each prompt goes to the engine that owes least."""
    owed = [0.0] * num_engines
    for size in sizes:
        i = owed.index(min(owed))
        owed[i] += DECLARED.prefill_base_s + DECLARED.prefill_token_s * size
    return min(owed)


@given(st.lists(st.sampled_from([1, 100, 2000, 30_000]), max_size=12), st.integers(1, 4), st.integers(0, 12))
def test_a_prediction_is_never_later_than_what_several_engines_may_do(
    sizes: list[int], num_engines: int, num_inside: int
) -> None:
    forecast, load = Forecast(DECLARED), EngineLoad(100)
    load.resize(100, num_engines)
    tickets = [Ticket(f"t{i}", "", 1, size, 1, 1, 0.0) for i, size in enumerate(sizes)]
    for ticket in tickets[:num_inside]:
        load.acquire(Permit(ticket, 0.0))
    survey = forecast.survey(load, 0.0)
    assert survey is not None
    for ticket in tickets[num_inside:]:
        survey.pass_by(ticket)
    new = Ticket("new", "", 1, 100, 1, 1, 0.0)
    own_s = survey.prefill_time(100) + DECLARED.step_s
    assert survey.predict(new) <= first_token(sizes, num_engines) + own_s + 1e-9


def test_quotas_of_a_key_count_over_all_models() -> None:
    quotas = KeyQuotas()
    gates = [AdmissionController(LIMITS, Drain(), quotas=quotas) for _ in range(2)]
    limits = Quotas(requests_per_minute=2)
    for i, gate in enumerate(gates):
        gate.enter(Ticket(f"t{i}", "key", 1, 1, 1, 1, 0.0, quotas=limits), 0.0)
        gate.poll(0.0)
    with pytest.raises(RateLimited):
        gates[0].enter(Ticket("t2", "key", 1, 1, 1, 1, 0.0, quotas=limits), 0.0)
    gates[0].leave("t0", 1, 0.0)
    gates[0].check_integrity()
