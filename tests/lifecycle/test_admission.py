"""AdmissionController: bounds, refusals that tell the truth, and permits that come back exactly once."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tidegate.errors import InternalError, LimitFact, QueueFull, ServerDraining
from tidegate.lifecycle.admission import AdmissionController, AdmissionLimits, Permit
from tidegate.lifecycle.drain import Drain, DrainEvent

LIMITS = AdmissionLimits(max_sequences=2, queue_depth=3, queued_tokens=100)


def controller() -> AdmissionController:
    return AdmissionController(LIMITS, Drain())


def test_running_and_waiting_sequences_fill_up_and_the_refusal_says_by_how_much() -> None:  # OVL-1
    admission = controller()
    permits = [admission.try_acquire(f"r{i}", 1, 1, now=float(i)) for i in range(5)]
    with pytest.raises(QueueFull) as refusal:
        admission.try_acquire("r5", 2, 1, now=5.0)
    assert refusal.value.limit == LimitFact("queue_depth", 3, 5, "server")
    assert refusal.value.retry_after_s == 1
    admission.release(permits[0])
    admission.try_acquire("r5", 1, 1, now=6.0)


def test_prompt_tokens_wait_only_until_the_first_output() -> None:
    admission = controller()
    first = admission.try_acquire("a", 1, 70, now=0.0)
    with pytest.raises(QueueFull) as refusal:
        admission.try_acquire("b", 1, 31, now=1.0)
    assert refusal.value.limit == LimitFact("queued_tokens", 100, 101, "server")
    admission.note_started(first)
    admission.note_started(first)
    second = admission.try_acquire("b", 1, 100, now=2.0)
    assert admission.statistics().queued_tokens == 100
    assert admission.statistics().oldest_unstarted_at == 2.0
    admission.release(second)
    admission.note_started(second)
    assert admission.statistics().queued_tokens == 0
    assert admission.statistics().oldest_unstarted_at is None


def test_what_is_too_large_for_a_bound_enters_alone_so_that_a_retry_can_help() -> None:
    admission = controller()
    small = admission.try_acquire("small", 1, 1, now=0.0)
    for num_choices, num_prompt_tokens in ((6, 1), (1, 101)):
        with pytest.raises(QueueFull):
            admission.try_acquire("large", num_choices, num_prompt_tokens, now=1.0)
    admission.release(small)
    large = admission.try_acquire("large", 6, 101, now=2.0)
    with pytest.raises(QueueFull):
        admission.try_acquire("small", 1, 1, now=3.0)
    admission.release(large)
    admission.check_integrity()


def test_a_request_without_a_prompt_never_waits_for_tokens() -> None:
    admission = controller()
    admission.try_acquire("a", 1, 100, now=0.0)
    with pytest.raises(QueueFull):
        admission.try_acquire("b", 1, 1, now=0.0)
    admission.try_acquire("c", 1, 0, now=0.0)


def test_nobody_enters_while_the_server_drains() -> None:  # LIFE-1
    drain = Drain()
    admission = AdmissionController(LIMITS, drain)
    permit = admission.try_acquire("a", 1, 1, now=0.0)
    drain.apply(DrainEvent.BEGIN)
    with pytest.raises(ServerDraining) as refusal:
        admission.try_acquire("b", 1, 1, now=1.0)
    assert 1 <= refusal.value.retry_after_s <= 120
    assert admission.num_live == 1
    assert admission.release(permit)
    assert admission.num_live == 0


def test_a_repeated_release_changes_nothing_and_is_counted() -> None:
    admission = controller()
    permit = admission.try_acquire("a", 2, 5, now=0.0)
    assert [admission.release(permit) for _ in range(3)] == [True, False, False]
    again = admission.try_acquire("a", 2, 5, now=1.0)
    assert not admission.release(permit)
    statistics = admission.statistics()
    assert (statistics.num_sequences, statistics.num_released, statistics.num_repeated_releases) == (2, 1, 3)
    assert admission.release(again)


@pytest.mark.parametrize(("num_choices", "num_prompt_tokens"), [(0, 1), (1, -1)])
def test_a_senseless_request_is_our_fault(num_choices: int, num_prompt_tokens: int) -> None:
    with pytest.raises(InternalError):
        controller().try_acquire("a", num_choices, num_prompt_tokens, now=0.0)


@pytest.mark.parametrize("limits", [(0, 1, 1), (1, -1, 1), (1, 0, 0)])
def test_limits_out_of_range_are_refused(limits: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        AdmissionLimits(*limits)


class Permits(RuleBasedStateMachine):
    """Any order of entering, starting and leaving, against a list of what is live."""

    def __init__(self) -> None:
        super().__init__()
        self.admission = controller()
        self.live: list[Permit] = []
        self.started: set[int] = set()
        self.gone: list[Permit] = []
        self.num_refused = 0

    def waiting_tokens(self) -> int:
        return sum(permit.num_prompt_tokens for permit in self.live if permit.number not in self.started)

    @rule(num_choices=st.integers(1, 8), num_prompt_tokens=st.integers(0, 150))
    def enter(self, num_choices: int, num_prompt_tokens: int) -> None:
        num_sequences = sum(permit.num_choices for permit in self.live)
        tokens = self.waiting_tokens()
        fits = (num_sequences == 0 or num_sequences + num_choices <= 5) and (
            tokens == 0 or tokens + num_prompt_tokens <= 100
        )
        try:
            self.live.append(self.admission.try_acquire("r", num_choices, num_prompt_tokens, now=0.0))
        except QueueFull:
            self.num_refused += 1
            assert not fits
        else:
            assert fits

    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        if self.live or self.gone:
            permit = data.draw(st.sampled_from(self.live + self.gone))
            self.admission.note_started(permit)
            self.started.add(permit.number)

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if self.live:
            permit = self.live.pop(data.draw(st.integers(0, len(self.live) - 1)))
            assert self.admission.release(permit)
            self.gone.append(permit)

    @rule(data=st.data())
    def leave_again(self, data: st.DataObject) -> None:
        if self.gone:
            assert not self.admission.release(data.draw(st.sampled_from(self.gone)))

    @invariant()
    def permits_are_conserved(self) -> None:
        self.admission.check_integrity()
        statistics = self.admission.statistics()
        assert statistics.num_requests == self.admission.num_live == len(self.live)
        assert statistics.num_sequences == sum(permit.num_choices for permit in self.live)
        assert statistics.queued_tokens == self.waiting_tokens()
        assert statistics.num_acquired - statistics.num_released == len(self.live)
        assert statistics.num_refused_depth + statistics.num_refused_tokens == self.num_refused

    def teardown(self) -> None:
        for permit in self.live:
            self.admission.release(permit)
        self.admission.check_integrity()
        assert self.admission.statistics().num_sequences == 0
        assert self.admission.statistics().queued_tokens == 0


TestPermits = Permits.TestCase
TestPermits.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
