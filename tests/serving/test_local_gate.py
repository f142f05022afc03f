"""LocalGate: it carries out what the machine says, keeps one timer, and outlives whoever stands in front of it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from tidegate.clock import Clock
from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.errors import InternalError, LimitFact, NoCapacity, QueueFull, RateFacts, RateLimited, ServeError
from tidegate.inference.model_info import ModelInfo
from tidegate.lifecycle.admission import AdmissionController, AdmissionLimits
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.principal import Principal, Quotas
from tidegate.lifecycle.ticket import Ticket
from tidegate.serving.gate import Gate
from tidegate.serving.local_gate import OBSERVE_INTERVAL_S, LocalGate
from tidegate.system import SystemClock
from tidegate.testing.manual_clock import ManualClock

WAIT_S = 30.0


def ticket(name: str, *, num_blocks: int = 1, quotas: Quotas | None = None) -> Ticket:
    return Ticket(name, "k", 1, 1, 1, num_blocks, 0.0, quotas=quotas if quotas is not None else Quotas())


@dataclass(slots=True)
class Caller:
    """Waits at the gate. `on_admit` and `on_refuse` are what it does in its call."""

    answers: list[object] = field(default_factory=list)
    on_admit: Callable[[], None] | None = None
    on_refuse: Callable[[], None] | None = None
    is_told: asyncio.Event = field(default_factory=asyncio.Event)

    def admit(self, rate: RateFacts | None) -> None:
        self.answers.append(rate)
        self.is_told.set()
        if self.on_admit is not None:
            self.on_admit()

    def refuse(self, error: ServeError) -> None:
        self.answers.append(error)
        self.is_told.set()
        if self.on_refuse is not None:
            self.on_refuse()

    @property
    def is_admitted(self) -> bool:
        return self.answers == [None]


@dataclass(slots=True)
class Desk:
    """A gate with one row, and everything it reports."""

    clock: Clock = field(default_factory=ManualClock)
    queue_deadline_ms: int = 60_000
    max_sequences: int = 1
    queue_depth: int = 3
    status: EngineStatus = field(default_factory=lambda: EngineStatus(True, 1, 0, 0, EngineGauges(), None))
    num_looks: int = 0
    faults: list[BaseException] = field(default_factory=list)
    gate: LocalGate = field(init=False)

    def __post_init__(self) -> None:
        limits = AdmissionLimits(self.max_sequences, self.queue_depth, 10_000, self.queue_deadline_ms, kv_overcommit=1)
        self.gate = LocalGate(AdmissionController(limits, Drain()), self.clock, self.look, on_fault=self.faults.append)

    def look(self) -> EngineStatus:
        self.num_looks += 1
        return self.status

    def enter(self, name: str, caller: Caller | None = None, **fields: int) -> Caller:
        caller = caller if caller is not None else Caller()
        self.gate.enter(ticket(name, **fields), caller)
        return caller

    def check_empty(self) -> None:
        statistics = self.gate.statistics()
        assert (statistics.num_requests, statistics.num_waiting, statistics.queued_tokens) == (0, 0, 0)
        self.gate.admission.check_integrity()


def run(scene: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await asyncio.wait_for(scene(), WAIT_S)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_it_is_a_gate() -> None:
    gate: Gate = Desk().gate
    assert gate.statistics().num_requests == 0


def test_one_is_let_in_at_once_and_the_next_ones_in_their_turn() -> None:
    async def scene() -> None:
        desk = Desk()
        callers = [desk.enter(f"r{i}") for i in range(4)]
        assert [caller.is_admitted for caller in callers] == [True, False, False, False]
        assert isinstance(desk.enter("r4").answers[0], QueueFull)
        desk.gate.leave("r2", 0)
        for i in (0, 1, 3):
            assert callers[i].is_admitted
            desk.gate.leave(f"r{i}", 2)
            desk.gate.leave(f"r{i}", 2)
        assert callers[2].answers == []
        desk.check_empty()

    run(scene)


def test_whoever_waits_too_long_is_told_so_by_a_timer() -> None:  # OVL-4
    async def scene() -> None:
        desk = Desk(SystemClock(), queue_deadline_ms=5)
        desk.enter("runs")
        callers = [desk.enter(f"waits{i}") for i in range(3)]
        for caller in callers:
            await caller.is_told.wait()
            assert [type(answer) for answer in caller.answers] == [NoCapacity]
        desk.gate.leave("runs", 0)
        desk.check_empty()

    run(scene)


def test_without_anybody_waiting_there_is_no_timer() -> None:
    async def scene() -> None:
        desk = Desk(SystemClock(), queue_deadline_ms=1)
        desk.enter("runs")
        waits = desk.enter("waits")
        desk.gate.leave("waits", 0)
        fresh = desk.enter("fresh")
        await fresh.is_told.wait()
        assert waits.answers == []
        desk.enter("last")
        desk.gate.close()
        desk.gate.close()

    run(scene)


def test_a_caller_that_leaves_in_its_call_makes_room_for_the_next() -> None:
    async def scene() -> None:
        desk = Desk()
        for i in range(4):
            desk.enter(f"r{i}", Caller(on_admit=lambda name=f"r{i}": desk.gate.leave(name, 0)))  # type: ignore[misc]
        desk.check_empty()
        desk.enter("runs")
        callers = [
            desk.enter(f"s{i}", Caller(on_admit=lambda name=f"s{i}": desk.gate.leave(name, 0)))  # type: ignore[misc]
            for i in range(3)
        ]
        desk.gate.leave("runs", 0)
        assert all(caller.is_admitted for caller in callers)
        desk.check_empty()

    run(scene)


def test_a_long_line_of_callers_that_leave_in_their_call_needs_no_deep_stack() -> None:
    async def scene() -> None:
        desk = Desk(queue_depth=3000)
        desk.enter("runs")
        callers = [
            desk.enter(f"s{i}", Caller(on_admit=lambda name=f"s{i}": desk.gate.leave(name, 0)))  # type: ignore[misc]
            for i in range(3000)
        ]
        desk.gate.leave("runs", 0)
        assert all(caller.is_admitted for caller in callers)
        assert desk.faults == []

    run(scene)


def test_a_caller_may_enter_another_and_end_it_in_its_call() -> None:
    async def scene() -> None:
        desk = Desk()
        inner = Caller()
        desk.enter("outer", Caller(on_admit=lambda: desk.gate.enter(ticket("inner"), inner)))
        assert inner.answers == []
        desk.gate.leave("outer", 0)
        assert inner.is_admitted

    run(scene)


def fail() -> None:
    raise RuntimeError("broken")


def test_a_caller_that_fails_when_its_turn_comes_loses_its_place_and_harms_nobody() -> None:
    async def scene() -> None:
        desk = Desk()
        desk.enter("runs")
        broken = desk.enter("broken", Caller(on_admit=fail))
        hopeless = desk.enter("hopeless", Caller(on_admit=fail, on_refuse=fail))
        healthy = desk.enter("healthy")
        desk.gate.leave("runs", 0)
        assert [type(answer) for answer in broken.answers] == [type(None), InternalError]
        assert [type(answer) for answer in hopeless.answers] == [type(None), InternalError]
        assert healthy.is_admitted
        assert [str(fault) for fault in desk.faults] == ["broken"] * 3
        desk.gate.leave("healthy", 0)
        desk.check_empty()

    run(scene)


def test_a_caller_that_fails_as_it_enters_hears_of_it_itself() -> None:
    async def scene() -> None:
        desk = Desk()
        with pytest.raises(RuntimeError, match="broken"):
            desk.enter("broken", Caller(on_admit=fail))
        assert desk.faults == []
        desk.check_empty()
        assert desk.enter("next").is_admitted

    run(scene)


def test_slots_of_a_key_are_claimed_and_given_back_once() -> None:
    async def scene() -> None:
        desk = Desk()
        limited = Principal("k", "key", quotas=Quotas(concurrency=1, requests_per_minute=5))
        slot = await desk.gate.claim_slot(limited)
        with pytest.raises(RateLimited) as refusal:
            await desk.gate.claim_slot(limited)
        assert refusal.value.limit == LimitFact("concurrency", 1, 2, "key")
        assert refusal.value.rate == RateFacts(5, 5, 0.0)
        slot.release()
        again = await desk.gate.claim_slot(limited)
        slot.release()
        assert desk.gate.statistics().num_slots == 1
        again.release()
        free = await desk.gate.claim_slot(Principal("l", "other"))
        free.release()
        assert desk.gate.statistics().num_slots == 0
        assert desk.gate.statistics().refusals == {"concurrency": 1}

    run(scene)


def test_callers_of_a_key_with_rates_are_told_what_is_left() -> None:
    async def scene() -> None:
        desk = Desk()
        caller = Caller()
        desk.gate.enter(ticket("r", quotas=Quotas(requests_per_minute=2)), caller)
        assert caller.answers == [RateFacts(2, 1, 60.0)]

    run(scene)


def test_the_engine_is_looked_at_now_and_then_and_its_blocks_bound_what_is_let_in() -> None:
    async def scene() -> None:
        clock = ManualClock()
        model = ModelInfo(258, 100, (257,), 8, num_blocks=10, block_tokens=16, weights_digest="", build="")
        desk = Desk(clock, max_sequences=8, status=EngineStatus(True, 1, 0, 0, EngineGauges(), model))
        assert [desk.enter(f"r{i}", num_blocks=5).is_admitted for i in range(3)] == [True, True, False]
        assert desk.num_looks == 1
        clock.advance(OBSERVE_INTERVAL_S)
        desk.gate.note_started("r0")
        desk.gate.note_started("r1")
        assert desk.num_looks == 2
        desk.gate.close()

    run(scene)
