"""MemoryQuotas: a `QuotaStore` in this process, out of the code that a server alone counts with. For tests."""

from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.quota import KeyQuotas, Reservation
from tidegate.lifecycle.quota_port import QuotaStatistics, QuotaUnavailable, SharedReservation, SharedSlot

_START_S = 1000.0


class MemoryQuotas:
    """Time stands still but for `advance`. While `is_away` nothing is answered."""

    def __init__(self) -> None:
        self.quotas = KeyQuotas()
        self.is_away = False
        self.settled: list[tuple[SharedReservation, int | None]] = []
        self._now = _START_S
        self._reservations: dict[int, Reservation] = {}
        self._slots: set[str] = set()
        self._num_named = self._num_answered = self._num_unanswered = 0

    def start(self) -> None:
        """Nothing runs in the background."""

    def advance(self, duration_s: float) -> None:
        """Lets time pass."""
        self._now += duration_s

    async def claim_slot(self, key_id: str, quotas: Quotas) -> SharedSlot:
        self._check()
        self._num_named += 1
        slot = SharedSlot(key_id, str(self._num_named))
        self.quotas.claim_slot(key_id, quotas, self._now)
        self._slots.add(slot.name)
        return slot

    async def release_slot(self, slot: SharedSlot) -> None:
        if slot.name in self._slots:
            self._slots.discard(slot.name)
            self.quotas.release_slot(slot.key_id)

    async def reserve(self, key_id: str, quotas: Quotas, num_tokens: int) -> SharedReservation:
        self._check()
        self.quotas.check(key_id, quotas, self._now)
        own = self.quotas.reserve(key_id, quotas, num_tokens, self._now)
        facts = self.quotas.facts(key_id, quotas, self._now)
        if own is None or facts is None:
            raise ValueError("a key without rates reserves nothing")
        shared = SharedReservation(key_id, quotas, num_tokens, own.window, facts)
        self._reservations[id(shared)] = own
        return shared

    async def settle(self, reservation: SharedReservation, num_used: int | None) -> None:
        self.settled.append((reservation, num_used))
        own = self._reservations.pop(id(reservation))
        if num_used is None:
            self.quotas.cancel(own, reservation.quotas, self._now)
        else:
            self.quotas.settle(own, reservation.quotas, num_used, self._now)

    def statistics(self) -> QuotaStatistics:
        return QuotaStatistics(len(self._slots), self._num_answered, self._num_unanswered)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _check(self) -> None:
        if self.is_away:
            self._num_unanswered += 1
            raise QuotaUnavailable("it is away")
        self._num_answered += 1
