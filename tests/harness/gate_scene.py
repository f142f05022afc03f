"""A gate on a manual clock, in a few words."""

from dataclasses import dataclass, field

from tidegate.errors import RateFacts, ServeError
from tidegate.lifecycle.admission import AdmissionController, AdmissionLimits, Grant
from tidegate.lifecycle.cost_model import ChunkRule, CostModel
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.ticket import Ticket

DECLARED = CostModel(prefill_base_s=0.020, prefill_token_s=0.000035, step_s=0.045)


@dataclass(slots=True)
class GateScene:
    """Enters, starts and ends requests; keeps who was let in, in order, and who was told no."""

    limits: AdmissionLimits
    declared: CostModel | None = None
    chunks: ChunkRule | None = None
    now: float = 1000.0
    drain: Drain = field(default_factory=Drain)
    admitted: list[str] = field(default_factory=list)
    rates: dict[str, RateFacts | None] = field(default_factory=dict)
    refused: dict[str, ServeError] = field(default_factory=dict)
    gate: AdmissionController = field(init=False)

    def __post_init__(self) -> None:
        self.gate = AdmissionController(self.limits, self.drain, declared=self.declared, chunks=self.chunks)

    def enter(
        self,
        name: str,
        *,
        key: str = "",
        choices: int = 1,
        prompt: int = 1,
        output: int = 1,
        blocks: int = 1,
        priority: int = 0,
        first_token_in: float | None = None,
        finish_in: float | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        """Raises what the gate raises. Durations are in seconds from now."""
        ticket = Ticket(
            name,
            key,
            choices,
            prompt,
            output,
            blocks,
            self.now,
            priority,
            None if first_token_in is None else self.now + first_token_in,
            None if finish_in is None else self.now + finish_in,
            quotas if quotas is not None else Quotas(),
        )
        self.gate.enter(ticket, self.now)
        self.poll()

    def start(self, *names: str) -> None:
        for name in names:
            self.gate.note_started(name, self.now)
        self.poll()

    def leave(self, *names: str, num_tokens: int = 0) -> None:
        for name in names:
            assert self.gate.leave(name, num_tokens, self.now)
        self.poll()

    def advance(self, duration_s: float) -> None:
        """Moves the clock, with a stop at every instant at which the gate wants to be woken."""
        end = self.now + duration_s
        for _ in range(10_000):
            wake_at = self.gate.next_wake_at()
            if wake_at is None or wake_at > end:
                self.now = end
                self.poll()
                return
            self.now = max(self.now, wake_at)
            self.poll()
        raise AssertionError("the gate does not rest")

    def poll(self) -> None:
        for decision in self.gate.poll(self.now):
            if isinstance(decision, Grant):
                self.admitted.append(decision.ticket_id)
                self.rates[decision.ticket_id] = decision.rate
            else:
                self.refused[decision.ticket_id] = decision.error
        self.gate.check_integrity()

    def check_empty(self) -> None:
        """Nothing is held by anybody."""
        statistics = self.gate.statistics()
        now = (
            statistics.num_requests,
            statistics.num_sequences,
            statistics.num_blocks,
            statistics.num_waiting,
            statistics.num_waiting_sequences,
            statistics.num_unstarted,
            statistics.queued_tokens,
            statistics.num_slots,
        )
        assert now == (0,) * 8
        assert self.gate.next_wake_at() is None
        self.gate.check_integrity()
