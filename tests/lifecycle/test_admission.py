"""AdmissionController: bounds, turns, refusals that tell the truth, and permits that come back exactly once."""

import pytest

from harness.gate_scene import GateScene
from tidegate.errors import (
    DeadlineExceeded,
    InternalError,
    LimitFact,
    NoCapacity,
    QueueFull,
    RateFacts,
    RateLimited,
    ServerDraining,
)
from tidegate.lifecycle.admission import AdmissionLimits
from tidegate.lifecycle.cost_model import StepTotals
from tidegate.lifecycle.drain import DrainEvent
from tidegate.lifecycle.engine_load import look_ahead
from tidegate.lifecycle.principal import Quotas

LIMITS = AdmissionLimits(max_sequences=2, queue_depth=3, queued_tokens=100, queue_deadline_ms=1000)
ONE_ROW = AdmissionLimits(max_sequences=1, queue_depth=1000, queued_tokens=10_000, queue_deadline_ms=60_000)


def test_running_and_waiting_sequences_fill_up_and_the_refusal_says_by_how_much() -> None:  # OVL-1
    scene = GateScene(LIMITS)
    for i in range(5):
        scene.enter(f"r{i}")
    assert scene.admitted == ["r0", "r1", "r2"], "one sequence waits in the engine, so that no row is ever idle"
    with pytest.raises(QueueFull) as refusal:
        scene.enter("r5", choices=2)
    assert refusal.value.limit == LimitFact("queue_depth", 3, 5, "server")
    assert refusal.value.retry_after_s == 1
    scene.leave("r0")
    assert scene.admitted[3:] == ["r3"]
    scene.enter("r5")


@pytest.mark.parametrize(("num_rows", "num_ahead"), [(1, 0), (2, 1), (31, 1), (32, 2), (256, 16)])
def test_few_sequences_wait_inside_the_engine(num_rows: int, num_ahead: int) -> None:
    assert look_ahead(num_rows) == num_ahead
    scene = GateScene(AdmissionLimits(num_rows, 1000, 10_000))
    for i in range(num_rows + 50):
        scene.enter(str(i))
    assert len(scene.admitted) == num_rows + num_ahead


def test_prompt_tokens_wait_only_until_the_first_output() -> None:  # OVL-1
    scene = GateScene(LIMITS)
    scene.enter("a", prompt=70)
    with pytest.raises(QueueFull) as refusal:
        scene.enter("b", prompt=31)
    assert refusal.value.limit == LimitFact("queued_tokens", 100, 101, "server")
    scene.start("a", "a")
    scene.enter("b", prompt=100)
    assert scene.gate.statistics().queued_tokens == 100
    scene.leave("b")
    scene.start("b")
    assert scene.gate.statistics().queued_tokens == 0


def test_what_is_too_large_for_a_bound_enters_alone_so_that_a_retry_can_help() -> None:
    scene = GateScene(LIMITS)
    scene.enter("small")
    for choices, prompt in ((6, 1), (1, 101)):
        with pytest.raises(QueueFull):
            scene.enter("large", choices=choices, prompt=prompt)
    scene.leave("small")
    scene.enter("large", choices=6, prompt=101)
    with pytest.raises(QueueFull):
        scene.enter("small")
    scene.leave("large")
    scene.check_empty()


def test_a_request_without_a_prompt_never_waits_for_tokens() -> None:
    scene = GateScene(LIMITS)
    scene.enter("a", prompt=100)
    with pytest.raises(QueueFull):
        scene.enter("b", prompt=1)
    scene.enter("c", prompt=0)


def test_a_wide_request_gets_in_as_soon_as_a_row_is_free() -> None:
    scene = GateScene(AdmissionLimits(4, 100, 1000))
    for i in range(5):
        scene.enter(f"r{i}")
    scene.enter("wide", choices=8)
    scene.enter("behind")
    scene.leave("r0")
    assert scene.admitted[5:] == ["wide"]
    assert scene.gate.statistics().num_sequences == 12
    scene.leave("wide")
    assert scene.admitted[6:] == ["behind"]


def test_what_is_let_in_fits_the_cache_several_times_and_one_alone_always_does() -> None:
    scene = GateScene(AdmissionLimits(8, 100, 1000, kv_overcommit=1.5))
    scene.gate.observe(StepTotals(), 10, scene.now)
    for name, blocks in (("a", 9), ("b", 6), ("c", 1), ("d", 1)):
        scene.enter(name, blocks=blocks)
    assert scene.admitted == ["a", "b"], "nothing passes one that does not fit"
    scene.leave("b")
    assert scene.admitted == ["a", "b", "c", "d"]
    scene.leave("a", "c", "d")
    scene.enter("huge", blocks=40)
    scene.enter("e")
    assert scene.admitted[4:] == ["huge"]
    scene.leave("huge")
    assert scene.admitted[5:] == ["e"]


def test_who_waits_for_blocks_counts_as_waiting_though_rows_are_free() -> None:
    scene = GateScene(AdmissionLimits(8, 1, 1000, kv_overcommit=1))
    scene.gate.observe(StepTotals(), 10, scene.now)
    scene.enter("a", blocks=10)
    scene.enter("b", blocks=10)
    with pytest.raises(QueueFull) as refusal:
        scene.enter("c", blocks=10)
    assert refusal.value.limit == LimitFact("queue_depth", 1, 2, "server")


def test_nobody_enters_while_the_server_drains_and_who_waits_already_stays() -> None:  # LIFE-1
    scene = GateScene(ONE_ROW)
    scene.enter("a")
    scene.enter("waits")
    scene.drain.apply(DrainEvent.BEGIN)
    with pytest.raises(ServerDraining) as refusal:
        scene.enter("b")
    assert 1 <= refusal.value.retry_after_s <= 120
    assert scene.gate.num_live == 2
    scene.leave("a")
    assert scene.admitted == ["a", "waits"]
    scene.leave("waits")
    scene.check_empty()


def test_waiting_has_its_own_deadline_counted_from_entry() -> None:  # OVL-4
    scene = GateScene(AdmissionLimits(1, 100, 1000, queue_deadline_ms=30_000))
    scene.enter("a")
    scene.advance(100.0)
    scene.enter("b")
    scene.advance(10.0)
    scene.enter("c")
    scene.advance(19.999)
    assert scene.refused == {}
    scene.advance(0.001)
    error = scene.refused["b"]
    assert isinstance(error, NoCapacity)
    assert error.limit == LimitFact("queue_deadline_ms", 30_000, 30_000, "server")
    assert 1 <= error.retry_after_s <= 120
    assert list(scene.refused) == ["b"]
    scene.leave("a")
    assert scene.admitted == ["a", "c"], "in the engine the queue's deadline is over"
    scene.advance(100.0)
    assert list(scene.refused) == ["b"]
    assert scene.gate.statistics().refusals == {"no_capacity": 1}


DEADLINES = [({"finish_in": 0.5}, 0.5), ({"first_token_in": 0.3, "finish_in": 5.0}, 0.3), ({"finish_in": 0.0}, None)]


@pytest.mark.parametrize(("deadlines", "gone_after"), DEADLINES)
def test_a_request_whose_time_is_over_leaves_the_queue(  # OVL-3
    deadlines: dict[str, float], gone_after: float | None
) -> None:
    scene = GateScene(ONE_ROW)
    scene.enter("a")
    if gone_after is None:
        with pytest.raises(DeadlineExceeded):
            scene.enter("late", **deadlines)  # type: ignore[arg-type]
        assert scene.gate.statistics().refusals == {"deadline_exceeded": 1}
        return
    scene.enter("late", **deadlines)  # type: ignore[arg-type]
    scene.advance(gone_after - 0.001)
    assert scene.refused == {}
    scene.advance(0.002)
    assert isinstance(scene.refused["late"], DeadlineExceeded)
    assert scene.gate.statistics().refusals == {"deadline_exceeded": 1}
    scene.leave("a")
    assert scene.admitted == ["a"]
    scene.check_empty()


def test_a_rate_is_checked_first_reserved_last_and_settled_at_the_end() -> None:  # RL-1
    scene = GateScene(AdmissionLimits(1, 1, 10_000, queue_deadline_ms=1000))
    quotas = Quotas(requests_per_minute=3, tokens_per_minute=100)
    scene.enter("a", key="k", prompt=10, output=40, quotas=quotas)
    assert scene.rates["a"] == RateFacts(3, 2, 60.0, 100, 50, 60.0)
    scene.enter("waits", key="k", prompt=10, output=30, quotas=quotas)
    with pytest.raises(QueueFull):
        scene.enter("full", key="k", quotas=quotas)
    scene.advance(1.0)
    assert isinstance(scene.refused["waits"], NoCapacity), "what the server takes back costs nothing"
    scene.leave("a", num_tokens=20)
    scene.enter("b", key="k", prompt=10, output=69, quotas=quotas)
    assert scene.rates["b"] == RateFacts(3, 1, 59.0, 100, 1, 59.0)
    scene.leave("b", num_tokens=79)
    scene.enter("c", key="k", prompt=1, output=5, quotas=quotas)
    with pytest.raises(RateLimited) as refusal:
        scene.enter("d", key="k", quotas=quotas)
    assert refusal.value.limit == LimitFact("requests_per_minute", 3, 4, "key")
    scene.enter("other", key="l", quotas=quotas)
    assert scene.gate.statistics().refusals == {"queue_depth": 1, "no_capacity": 1, "requests_per_minute": 1}


def test_a_client_that_leaves_the_queue_gives_its_tokens_back_but_has_asked() -> None:
    scene = GateScene(ONE_ROW)
    quotas = Quotas(requests_per_minute=2, tokens_per_minute=100)
    scene.enter("a")
    scene.enter("waits", key="k", prompt=10, output=80, quotas=quotas)
    scene.leave("waits")
    assert scene.gate.statistics().num_withdrawn == 1
    scene.enter("again", key="k", prompt=10, output=80, quotas=quotas)
    with pytest.raises(RateLimited):
        scene.enter("more", key="k", quotas=quotas)


def test_a_repeated_leave_changes_nothing() -> None:
    scene = GateScene(LIMITS)
    scene.enter("a", choices=2, prompt=5)
    assert [scene.gate.leave("a", 0, scene.now) for _ in range(3)] == [True, False, False]
    scene.check_empty()


@pytest.mark.parametrize("sizes", [{"choices": 0}, {"prompt": -1}, {"blocks": -1}, {"output": -1}])
def test_a_senseless_request_is_our_fault(sizes: dict[str, int]) -> None:
    with pytest.raises(InternalError):
        GateScene(LIMITS).enter("a", **sizes)  # type: ignore[arg-type]


def test_nobody_enters_twice() -> None:
    scene = GateScene(ONE_ROW)
    for name in ("in the engine", "waits"):
        scene.enter(name)
    for name in ("in the engine", "waits"):
        with pytest.raises(InternalError):
            scene.enter(name)


@pytest.mark.parametrize("limits", [(0, 1, 1), (1, -1, 1), (1, 0, 0), (1, 1, 1, 0), (1, 1, 1, 1, 0.5)])
def test_limits_out_of_range_are_refused(limits: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        AdmissionLimits(*limits)
