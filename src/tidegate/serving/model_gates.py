"""ModelGates: the `Gate` of a server of several models: one gate for each, because each has rows and blocks of its own.

A ticket's model says whose it is. Slots and quotas of keys are shared by the gates (`lifecycle/quota.py`): they count
over all models.
"""

from collections import Counter
from collections.abc import Mapping

from tidegate.errors import InternalError
from tidegate.lifecycle.admission_statistics import AdmissionStatistics
from tidegate.lifecycle.principal import Principal
from tidegate.lifecycle.ticket import Ticket
from tidegate.serving.gate import Entrant, KeySlot
from tidegate.serving.local_gate import LocalGate


class ModelGates:
    """Implements `Gate`. `gates` are found by every name of their model."""

    def __init__(self, gates: Mapping[str, LocalGate]) -> None:
        self._by_name = dict(gates)
        self.gates = tuple(dict.fromkeys(gates.values()))

    async def claim_slot(self, principal: Principal) -> KeySlot:
        """See `Gate.claim_slot`."""
        return await self.gates[0].claim_slot(principal)

    def enter(self, ticket: Ticket, entrant: Entrant) -> None:
        """See `Gate.enter`."""
        gate = self._by_name.get(ticket.model)
        if gate is None:
            raise InternalError(f"a ticket for the model {ticket.model}, which nobody serves")
        gate.enter(ticket, entrant)

    def note_started(self, ticket_id: str) -> None:
        """See `Gate.note_started`. Ids are unique over all models."""
        for gate in self.gates:
            gate.note_started(ticket_id)

    def leave(self, ticket_id: str, num_tokens: int) -> None:
        """See `Gate.leave`."""
        for gate in self.gates:
            gate.leave(ticket_id, num_tokens)

    def note_engine_changed(self) -> None:
        """See `LocalGate.note_engine_changed`."""
        for gate in self.gates:
            gate.note_engine_changed()

    def statistics(self) -> AdmissionStatistics:
        """Returns the sums."""
        return join_statistics([gate.statistics() for gate in self.gates])

    def statistics_of(self, model: str) -> AdmissionStatistics:
        """Returns the accounts of one model, by any of its names."""
        return self._by_name[model].statistics()

    def close(self) -> None:
        """Stops the timers."""
        for gate in self.gates:
            gate.close()


_SHARED = frozenset({"num_slots", "num_keys"})
"""Counted once for all gates."""


def join_statistics(parts: list[AdmissionStatistics]) -> AdmissionStatistics:
    """Returns the accounts of several gates with shared quotas as those of one."""
    refusals: Counter[str] = Counter()
    for part in parts:
        refusals.update(part.refusals)
    waiting = [part.oldest_waiting_at for part in parts if part.oldest_waiting_at is not None]
    sums = {
        name: getattr(parts[0], name) if name in _SHARED else sum(getattr(part, name) for part in parts)
        for name in AdmissionStatistics.__dataclass_fields__
        if name not in {"refusals", "oldest_waiting_at"}
    }
    return AdmissionStatistics(**sums, refusals=dict(refusals), oldest_waiting_at=min(waiting, default=None))
