"""Several gates as one: tickets find the gate of their model, and accounts add up."""

import pytest

from tidegate.errors import InternalError, QueueFull, RateFacts, ServeError
from tidegate.lifecycle.admission import AdmissionController, AdmissionLimits
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.quota import KeyQuotas
from tidegate.lifecycle.ticket import Ticket
from tidegate.serving.local_gate import LocalGate
from tidegate.serving.model_gates import ModelGates
from tidegate.testing.manual_clock import ManualClock

LIMITS = AdmissionLimits(max_sequences=1, queue_depth=0, queued_tokens=100)


class Entrant:
    def __init__(self) -> None:
        self.told: list[object] = []

    def admit(self, rate: RateFacts | None) -> None:
        self.told.append("in")

    def refuse(self, error: ServeError) -> None:
        self.told.append(error)


def make() -> ModelGates:
    quotas, clock = KeyQuotas(), ManualClock()
    small, big = (LocalGate(AdmissionController(LIMITS, Drain(), quotas=quotas), clock) for _ in range(2))
    return ModelGates({"small": small, "alias": small, "big": big})


def enter(gates: ModelGates, name: str, model: str) -> list[object]:
    entrant = Entrant()
    gates.enter(Ticket(name, "", 1, 1, 1, 1, 1000.0, model=model), entrant)
    return entrant.told


def test_each_model_has_its_own_rows() -> None:
    gates = make()
    assert enter(gates, "a", "small") == enter(gates, "b", "big") == ["in"]
    (refusal,) = enter(gates, "c", "alias")
    assert isinstance(refusal, QueueFull)
    gates.note_started("a")
    both = gates.statistics()
    assert (both.num_requests, both.num_unstarted, both.num_entered, both.refusals) == (2, 1, 2, {"queue_depth": 1})
    gates.leave("a", 2)
    gates.leave("a", 2)
    assert enter(gates, "d", "alias") == ["in"]
    gates.leave("b", 2)
    gates.leave("d", 2)
    assert gates.statistics().num_requests == 0
    gates.note_engine_changed()
    gates.close()


def test_a_ticket_for_nobody_is_a_fault_of_ours() -> None:
    with pytest.raises(InternalError):
        enter(make(), "a", "nobody")
