"""The veto: the arithmetic of the declared costs, exactly, and when it is done again.

Declared: prefill(n) = 20 ms + 0.035 ms x n, step 45 ms. So 500 tokens take 37.5 ms, 2,000 take 90 ms.
"""

from collections.abc import Callable

import pytest

from harness.gate_scene import DECLARED, GateScene
from tidegate.errors import DeadlineUnreachable
from tidegate.lifecycle.admission import AdmissionLimits
from tidegate.lifecycle.cost_model import ChunkRule, CostModel

WIDE = AdmissionLimits(max_sequences=32, queue_depth=1000, queued_tokens=100_000, queue_deadline_ms=600_000)
NARROW = AdmissionLimits(max_sequences=1, queue_depth=1000, queued_tokens=100_000, queue_deadline_ms=600_000)


def scene(limits: AdmissionLimits, num_ahead: int, prompt: int) -> GateScene:
    made = GateScene(limits, DECLARED)
    for i in range(num_ahead):
        made.enter(f"ahead{i}", prompt=prompt)
    return made


@pytest.mark.parametrize("limits", [WIDE, NARROW], ids=["ahead in the engine", "ahead at the gate"])
@pytest.mark.parametrize(("num_ahead", "prompt", "wait_ms"), [(4, 500, 285), (2, 2000, 315), (0, 0, 135), (1, 0, 155)])
def test_the_predicted_first_token_is_queue_and_prefill_and_one_step(  # OVL-3
    limits: AdmissionLimits, num_ahead: int, prompt: int, wait_ms: int
) -> None:
    made = scene(limits, num_ahead, prompt)
    made.enter("just in time", prompt=2000, first_token_in=wait_ms / 1000 + 1e-9)
    made.leave("just in time")
    blocks = made.gate.statistics().num_blocks
    with pytest.raises(DeadlineUnreachable) as refusal:
        made.enter("too late", prompt=2000, first_token_in=wait_ms / 1000 - 1e-9)
    assert f"expected in {wait_ms} ms" in refusal.value.message
    assert made.gate.statistics().refusals == {"deadline_unreachable": 1}
    assert made.gate.statistics().num_blocks == blocks
    made.gate.check_integrity()


@pytest.mark.parametrize("limits", [WIDE, NARROW], ids=["ahead in the engine", "ahead at the gate"])
def test_behind_150_ms_it_passes_a_deadline_of_300_ms_and_behind_180_ms_it_is_vetoed(limits: AdmissionLimits) -> None:
    passes = scene(limits, 4, 500)
    passes.enter("x", prompt=2000, first_token_in=0.3)
    assert passes.gate.num_live == 5
    vetoed = scene(limits, 2, 2000)
    with pytest.raises(DeadlineUnreachable):
        vetoed.enter("x", prompt=2000, first_token_in=0.3)
    assert vetoed.gate.num_live == 2


def test_the_total_deadline_counts_as_well() -> None:
    made = scene(NARROW, 2, 2000)
    with pytest.raises(DeadlineUnreachable):
        made.enter("x", prompt=2000, finish_in=0.3, first_token_in=5.0)


def test_while_everything_goes_as_predicted_nobody_is_vetoed() -> None:
    """The prediction stands still at 285 ms as the four ahead go, one every 37.5 ms."""
    made = scene(NARROW, 4, 500)
    made.enter("x", prompt=2000, first_token_in=0.285001)
    for i in range(4):
        made.advance(0.0375)
        made.start(f"ahead{i}")
        made.leave(f"ahead{i}")
    assert made.refused == {}
    assert made.admitted[-1] == "x"
    made.advance(0.135)
    made.start("x")
    statistics = made.gate.statistics()
    assert (statistics.num_predictions, statistics.num_late_predictions) == (5, 0)
    assert statistics.prediction_error_s == pytest.approx(4 * 0.045), "only the last met with another step"


def test_one_that_can_no_longer_be_in_time_is_refused_when_that_is_known_and_not_at_its_deadline() -> None:  # OVL-3
    made = scene(NARROW, 4, 500)
    made.enter("x", prompt=2000, first_token_in=0.3)
    entered_at = made.now
    made.advance(0.0375)
    assert made.refused == {}
    made.advance(0.014)
    assert made.refused == {}, "the prefill under way is late by 14 ms: 299 ms"
    made.advance(0.003)
    assert isinstance(made.refused["x"], DeadlineUnreachable)
    assert made.now - entered_at < 0.06
    assert made.gate.statistics().refusals == {"deadline_unreachable": 1}


MOVES: list[tuple[str, Callable[[GateScene], None]]] = [
    ("a request of higher priority gets in front", lambda made: made.enter("first", prompt=500, priority=-1)),
    ("another key takes its turn", lambda made: made.enter("turn", prompt=500, key="other")),
]


@pytest.mark.parametrize("move", [case[1] for case in MOVES], ids=[case[0] for case in MOVES])
def test_what_gets_in_front_is_counted_at_once(move: Callable[[GateScene], None]) -> None:
    made = scene(NARROW, 4, 500)
    made.enter("x", prompt=2000, first_token_in=0.3)
    move(made)
    assert isinstance(made.refused["x"], DeadlineUnreachable)


def test_what_comes_behind_does_no_harm() -> None:
    made = scene(NARROW, 4, 500)
    made.enter("x", prompt=2000, first_token_in=0.3)
    for i in range(20):
        made.enter(f"behind{i}", prompt=2000)
        made.enter(f"below{i}", prompt=2000, priority=1)
    assert made.refused == {}


def test_what_leaves_makes_room_in_time() -> None:
    made = scene(NARROW, 4, 500)
    made.leave("ahead3")
    made.enter("x", prompt=2000, first_token_in=0.25)
    made.leave("ahead2", "ahead1")
    made.advance(0.11)
    assert made.refused == {}
    made.advance(0.01)
    assert list(made.refused) == ["x"]


def test_one_that_is_lost_does_not_take_others_with_it() -> None:
    """Both are looked at together, 60 ms on without progress: behind the lost one the other would be late as well."""
    made = scene(NARROW, 4, 500)
    made.enter("lost", prompt=2000, first_token_in=0.3)
    made.enter("saved", prompt=500, first_token_in=0.34)
    made.now += 0.06
    made.poll()
    assert list(made.refused) == ["lost"]


def test_nobody_is_vetoed_before_costs_are_known() -> None:
    made = GateScene(NARROW)
    made.enter("ahead", prompt=90_000)
    made.enter("x", prompt=2000, first_token_in=0.001)
    made.enter("y", prompt=2000, finish_in=10.0)
    assert made.refused == {}


def test_rows_that_are_taken_are_waited_for() -> None:
    made = GateScene(AdmissionLimits(2, 1000, 100_000, queue_deadline_ms=600_000), DECLARED)
    for i in range(8):
        made.enter(f"seen{i}")
        made.start(f"seen{i}")
        made.advance(10.0)
        made.leave(f"seen{i}")
    for i in range(3):
        made.enter(f"runs{i}")
        made.start(f"runs{i}")
    made.advance(1.0)
    with pytest.raises(DeadlineUnreachable):
        made.enter("hurried", first_token_in=9.0)
    made.enter("patient", first_token_in=9.1)
    made.leave("runs0", "runs1", "runs2")
    assert made.admitted[-1] == "patient"


@pytest.mark.parametrize(("is_beside", "wait_s"), [(False, 4 * 0.1 + 0.01), (True, 8 * 0.1 + 7 * 0.01 + 0.01)])
def test_a_prompt_that_is_cut_into_chunks_pays_for_each(is_beside: bool, wait_s: float) -> None:
    costs = CostModel(prefill_base_s=0.1, prefill_token_s=0.0, step_s=0.01)
    made = GateScene(WIDE, costs, ChunkRule(alone=128, beside_decodes=64))
    if is_beside:
        made.enter("decodes")
        made.start("decodes")
    with pytest.raises(DeadlineUnreachable):
        made.enter("x", prompt=512, first_token_in=wait_s - 1e-6)
    made.enter("x", prompt=512, first_token_in=wait_s + 1e-6)
    made.enter("behind", prompt=1, first_token_in=2 * wait_s)
