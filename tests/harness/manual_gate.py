"""A `Gate` that opens when the test says so, and keeps who entered, started and left."""

from collections import Counter

from tidegate.errors import RateFacts, ServeError
from tidegate.lifecycle.admission import AdmissionStatistics
from tidegate.lifecycle.principal import Principal
from tidegate.lifecycle.ticket import Ticket
from tidegate.serving.gate import Entrant, KeySlot


class CountedSlot:
    """A slot that counts itself."""

    def __init__(self, gate: "ManualGate") -> None:
        self._gate = gate
        self._is_held = True

    def release(self) -> None:
        self._gate.num_slots -= self._is_held
        self._is_held = False


class ManualGate:
    """`is_open` admits everybody at once, with the facts in `rate`; otherwise see `admit` and `refuse`."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.is_open = is_open
        self.rate: RateFacts | None = None
        self.slot_refusal: ServeError | None = None
        self.num_slots = 0
        self.claimed: list[Principal] = []
        self.tickets: list[Ticket] = []
        self.waiting: dict[str, Entrant] = {}
        self.inside: set[str] = set()
        self.started: Counter[str] = Counter()
        self.left: Counter[str] = Counter()
        self.used: dict[str, int] = {}

    async def claim_slot(self, principal: Principal) -> KeySlot:
        if self.slot_refusal is not None:
            raise self.slot_refusal
        self.claimed.append(principal)
        self.num_slots += 1
        return CountedSlot(self)

    def enter(self, ticket: Ticket, entrant: Entrant) -> None:
        self.tickets.append(ticket)
        self.waiting[ticket.ticket_id] = entrant
        if self.is_open:
            self.admit(ticket.ticket_id)

    def admit(self, ticket_id: str) -> None:
        """Lets one in that waits."""
        entrant = self.waiting.pop(ticket_id)
        self.inside.add(ticket_id)
        entrant.admit(self.rate)

    def refuse(self, ticket_id: str, error: ServeError) -> None:
        """Turns one away that waits."""
        self.waiting.pop(ticket_id).refuse(error)

    def note_started(self, ticket_id: str) -> None:
        self.started[ticket_id] += 1

    def leave(self, ticket_id: str, num_tokens: int) -> None:
        self.left[ticket_id] += 1
        self.used[ticket_id] = num_tokens
        self.waiting.pop(ticket_id, None)
        self.inside.discard(ticket_id)

    def statistics(self) -> AdmissionStatistics:
        raise NotImplementedError
