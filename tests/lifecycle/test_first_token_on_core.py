"""The forecast against the real engine core: the simulated backend at its declared costs, on a virtual clock.

Two rows. One stream keeps the first; its next word is due 150 ms from now. The prompts ahead use the other row in
turn. So the newcomer's prefill shares its step with one decode row, and its first byte comes when the forecast says.
"""

from dataclasses import dataclass, field

import pytest

from tidegate.backends.simulated import SimulatedBackend, SimulatedShape
from tidegate.core.budget import StepLimits
from tidegate.core.chooser import Chosen
from tidegate.errors import DeadlineUnreachable
from tidegate.inference.request import InferenceRequest
from tidegate.lifecycle.admission import AdmissionController, AdmissionLimits, Grant
from tidegate.lifecycle.cost_model import CostModel
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.ticket import Ticket
from tidegate.testing.core_driver import CoreDriver
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.plain_chooser import PlainChooser
from tidegate.testing.requests import make_request

BLOCK_TOKENS = 16
STREAM_PROMPT = 100
COSTS = CostModel(prefill_base_s=0.020, prefill_token_s=0.000035, step_s=0.045)
SHAPE = SimulatedShape(
    max_model_len=4096, max_sequences=2, max_step_tokens=2048, num_blocks=1024, block_tokens=BLOCK_TOKENS
)


@dataclass(slots=True)
class GatedCore:
    """A gate in front of an engine core, both on one clock."""

    stream_resumes_after_s: float
    clock: ManualClock = field(default_factory=ManualClock)
    started_at: dict[str, float] = field(default_factory=dict)
    requests: dict[str, InferenceRequest] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    gate: AdmissionController = field(init=False)
    driver: CoreDriver = field(init=False)

    def __post_init__(self) -> None:
        words = [Chosen([65], resume_after_s=self.stream_resumes_after_s), *(Chosen([65]) for _ in range(9))]
        backend = SimulatedBackend(shape=SHAPE, elapse=self.clock.advance)
        chooser = PlainChooser({("stream", 0): words})
        self.driver = CoreDriver(
            backend, chooser, limits=StepLimits(max_prefill_tokens=2048, has_prefix_cache=False), clock=self.clock
        )
        limits = AdmissionLimits(SHAPE.max_sequences, 100, 100_000)
        self.gate = AdmissionController(limits, Drain(), declared=COSTS)

    def enter(self, name: str, num_prompt: int, max_tokens: int = 1, first_token_in: float | None = None) -> None:
        now = self.clock.now()
        self.requests[name] = make_request(name, [65] * num_prompt, max_tokens=max_tokens)
        num_blocks = -(-(num_prompt + max_tokens) // BLOCK_TOKENS)
        by = None if first_token_in is None else now + first_token_in
        self.gate.enter(Ticket(name, "", 1, num_prompt, max_tokens, num_blocks, now, first_token_by=by), now)
        self.settle()

    def settle(self) -> None:
        for decision in self.gate.poll(self.clock.now()):
            if isinstance(decision, Grant):
                self.driver.add(self.requests[decision.ticket_id])
            else:
                self.refused.add(decision.ticket_id)

    def step(self) -> None:
        wake_at = self.driver.core.next_wake_at(self.clock.now())
        assert wake_at is not None
        self.clock.advance_to(wake_at)
        deltas = self.driver.step()
        now = self.clock.now()
        for delta in deltas:
            if delta.token_ids and delta.request_id not in self.started_at:
                self.started_at[delta.request_id] = now
                self.gate.note_started(delta.request_id, now)
            if delta.finish is not None:
                self.gate.leave(delta.request_id, 0, now)
        self.settle()

    def run(self) -> None:
        while self.driver.core.next_wake_at(self.clock.now()) is not None:
            self.step()


def begin(num_ahead: int, num_prompt: int, resumes_after_s: float) -> GatedCore:
    """The stream has said its first word just now; the prompts ahead have come."""
    stream_prefill_s = COSTS.prefill_base_s + COSTS.prefill_token_s * STREAM_PROMPT
    made = GatedCore(stream_prefill_s + resumes_after_s)
    made.enter("stream", STREAM_PROMPT, max_tokens=4)
    made.step()
    for i in range(num_ahead):
        made.enter(f"ahead{i}", num_prompt)
    return made


def test_behind_150_ms_the_first_byte_of_2000_tokens_comes_at_285_ms() -> None:
    made = begin(4, 500, resumes_after_s=0.149)
    arrived_at = made.clock.now()
    made.enter("x", 2000, first_token_in=0.300)
    made.run()
    waits = {name: made.started_at[name] - arrived_at for name in ("ahead0", "ahead3", "x")}
    assert waits == pytest.approx({"ahead0": 0.0375, "ahead3": 0.150, "x": 0.285})
    assert made.refused == set()
    assert made.gate.statistics().num_late_predictions == 0
    made.driver.assert_at_rest()
    made.gate.check_integrity()


def test_behind_180_ms_it_is_vetoed_and_the_engine_never_hears_of_it() -> None:  # OVL-3
    made = begin(2, 2000, resumes_after_s=0.179)
    before, num_steps = made.driver.core.statistics(), len(made.driver.backend.plans)
    with pytest.raises(DeadlineUnreachable) as refusal:
        made.enter("x", 2000, first_token_in=0.300)
    assert "expected in 315 ms" in refusal.value.message
    after = made.driver.core.statistics()
    assert (after, len(made.driver.backend.plans)) == (before, num_steps)
    made.run()
    assert ("x", 0) not in made.driver.records
    made.driver.assert_at_rest()
    assert made.gate.num_live == 0


def test_without_its_deadline_the_same_request_would_have_come_at_315_ms() -> None:
    made = begin(2, 2000, resumes_after_s=0.179)
    arrived_at = made.clock.now()
    made.enter("x", 2000)
    made.run()
    assert made.started_at["x"] - arrived_at == pytest.approx(0.315)
