"""AdmissionController under any schedule, against a plain list of who is where."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harness.gate_scene import DECLARED, GateScene
from tidegate.errors import ServeError
from tidegate.lifecycle.admission import AdmissionLimits
from tidegate.lifecycle.cost_model import StepTotals
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.ticket import Ticket

LIMITS = AdmissionLimits(max_sequences=3, queue_depth=6, queued_tokens=4000, queue_deadline_ms=2000, kv_overcommit=1.5)
NUM_BLOCKS = 20
QUOTAS = {"free": Quotas(), "rated": Quotas(requests_per_minute=8, tokens_per_minute=3000)}
DEADLINES = st.one_of(st.none(), st.floats(0.0, 3.0))


class Gate(RuleBasedStateMachine):
    """Every ticket is somewhere: refused at once, waiting, let in, or told no later; and ends exactly once."""

    def __init__(self) -> None:
        super().__init__()
        self.scene = GateScene(LIMITS, DECLARED)
        self.scene.gate.observe(StepTotals(), NUM_BLOCKS, self.scene.now)
        self.tickets: dict[str, Ticket] = {}
        self.started: set[str] = set()
        self.left: set[str] = set()
        self.num_refused_at_once = 0

    def inside(self) -> list[str]:
        return [name for name in self.scene.admitted if name not in self.left]

    def waiting(self) -> list[str]:
        gone = {*self.scene.admitted, *self.scene.refused, *self.left}
        return [name for name in self.tickets if name not in gone]

    @rule(
        key=st.sampled_from(sorted(QUOTAS)),
        sizes=st.tuples(st.integers(1, 4), st.integers(0, 2000), st.integers(0, 20), st.integers(0, 12)),
        priority=st.integers(-1, 1),
        first_token_in=DEADLINES,
        finish_in=DEADLINES,
    )
    def enter(
        self,
        key: str,
        sizes: tuple[int, int, int, int],
        priority: int,
        first_token_in: float | None,
        finish_in: float | None,
    ) -> None:
        name, (choices, prompt, output, blocks) = f"t{len(self.tickets) + self.num_refused_at_once}", sizes
        now = self.scene.now
        by = [None if wait is None else now + wait for wait in (first_token_in, finish_in)]
        ticket = Ticket(name, key, choices, prompt, output, blocks, now, priority, by[0], by[1], QUOTAS[key])
        try:
            self.scene.gate.enter(ticket, now)
        except ServeError:
            self.num_refused_at_once += 1
        else:
            self.tickets[name] = ticket
        self.scene.poll()

    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        if self.scene.admitted:
            name = data.draw(st.sampled_from(self.scene.admitted))
            self.scene.start(name)
            self.started.add(name)

    @rule(data=st.data(), num_tokens=st.integers(0, 3000))
    def leave(self, data: st.DataObject, num_tokens: int) -> None:
        """From the engine or from the queue; a second time changes nothing."""
        here = self.inside() + self.waiting()
        if here:
            name = data.draw(st.sampled_from(here))
            self.left.add(name)
            self.scene.leave(name, num_tokens=num_tokens)
        for name in [*self.left, *self.scene.refused]:
            assert not self.scene.gate.leave(name, 0, self.scene.now)

    @rule(duration_s=st.floats(0.0, 1.5))
    def advance(self, duration_s: float) -> None:
        self.scene.advance(duration_s)

    @invariant()
    def everybody_is_somewhere_once(self) -> None:
        names = [*self.scene.admitted, *self.scene.refused]
        assert len(names) == len(set(names))
        statistics = self.scene.gate.statistics()
        inside = [self.tickets[name] for name in self.inside()]
        waiting = [self.tickets[name] for name in self.waiting()]
        silent = [ticket for ticket in inside if ticket.ticket_id not in self.started] + waiting
        assert statistics.num_requests == len(inside)
        assert statistics.num_sequences == sum(ticket.num_choices for ticket in inside)
        assert statistics.num_blocks == sum(ticket.num_blocks for ticket in inside)
        assert statistics.num_waiting == len(waiting)
        assert statistics.num_waiting_sequences == sum(ticket.num_choices for ticket in waiting)
        assert statistics.num_unstarted == len(silent)
        assert statistics.queued_tokens == sum(ticket.num_prompt_tokens for ticket in silent)
        assert sum(statistics.refusals.values()) == len(self.scene.refused) + self.num_refused_at_once
        assert statistics.num_entered == len(self.tickets)

    @invariant()
    def bounds_hold_and_nobody_waits_for_nothing(self) -> None:
        inside = [self.tickets[name] for name in self.inside()]
        waiting = [self.tickets[name] for name in self.waiting()]
        assert len(inside) <= 1 or sum(t.num_blocks for t in inside) <= NUM_BLOCKS * LIMITS.kv_overcommit
        assert sum(t.num_choices for t in inside[:-1]) <= LIMITS.max_sequences
        assert len(waiting) <= 1 or sum(t.num_choices for t in waiting) <= LIMITS.queue_depth
        assert not waiting or inside
        for ticket in waiting:
            assert self.scene.now < ticket.received_at + LIMITS.queue_deadline_ms / 1000
            assert ticket.must_start_by is None or self.scene.now < ticket.must_start_by

    def teardown(self) -> None:
        """The overload is over: what waits gets in or gives up, and nothing is left."""
        for name in self.waiting()[::2]:
            self.left.add(name)
            self.scene.leave(name)
        while inside := self.inside():
            self.left.add(inside[0])
            self.scene.leave(inside[0])
        assert not self.waiting()
        self.scene.check_empty()


TestGate = Gate.TestCase
TestGate.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
