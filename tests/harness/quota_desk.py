"""A gate with one row whose keys' quotas are counted by a store in memory."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tidegate.errors import RateFacts, ServeError
from tidegate.lifecycle.admission import AdmissionController, AdmissionLimits
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.ticket import Ticket
from tidegate.serving.local_gate import LocalGate
from tidegate.serving.shared_quota_gate import SharedQuotaGate
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.memory_quotas import MemoryQuotas


@dataclass(slots=True)
class Caller:
    """Waits at the gate; with `raises` its admission fails."""

    raises: bool = False
    answers: list[Any] = field(default_factory=list)
    _is_told: asyncio.Event = field(default_factory=asyncio.Event)

    def admit(self, rate: RateFacts | None) -> None:
        if self.raises:
            raise ValueError("a fault of the entrant's")
        self.answers.append(rate)
        self._is_told.set()

    def refuse(self, error: ServeError) -> None:
        self.answers.append(error)
        self._is_told.set()

    async def told(self) -> None:
        async with asyncio.timeout(30):
            await self._is_told.wait()


class QuotaDesk:
    """See the module. Two may wait."""

    def __init__(self, refuses_when_away: bool) -> None:
        self.faults: list[BaseException] = []
        self.store = MemoryQuotas()
        limits = AdmissionLimits(1, 2, 10_000, 60_000, kv_overcommit=1)
        self.local = LocalGate(AdmissionController(limits, Drain()), ManualClock(), on_fault=self.faults.append)
        self.gate = SharedQuotaGate(
            self.local, self.store, refuses_when_away=refuses_when_away, on_fault=self.faults.append
        )

    def enter(self, name: str, *, quotas: Quotas, num_output_tokens: int = 1, raises: bool = False) -> Caller:
        caller = Caller(raises)
        self.gate.enter(Ticket(name, "k", 1, 1, num_output_tokens, 1, 0.0, quotas=quotas), caller)
        return caller

    async def asked(self) -> None:
        """Waits until the store has answered every question."""
        async with asyncio.timeout(30):
            while self.gate._asking:
                await asyncio.sleep(0)

    async def settled(self, number: int) -> None:
        """Waits until the store was told so many ends."""
        async with asyncio.timeout(30):
            while len(self.store.settled) < number:
                await asyncio.sleep(0)

    async def idle(self) -> None:
        """Waits until nothing is on its way to the store."""
        async with asyncio.timeout(30):
            while self.gate._tasks:
                await asyncio.sleep(0)
