"""LocalGate: the `Gate` of one server process, around the machine that decides."""

from tidegate.clock import Clock
from tidegate.errors import ServeError
from tidegate.lifecycle.admission import AdmissionController, AdmissionStatistics, Permit
from tidegate.lifecycle.principal import Principal
from tidegate.lifecycle.ticket import Ticket
from tidegate.serving.gate import Entrant, KeySlot


class FreeSlot:
    """The slot of a key without a limit."""

    def release(self) -> None:
        """Nothing is held."""


class LocalGate:
    """Implements `Gate`."""

    def __init__(self, admission: AdmissionController, clock: Clock) -> None:
        self.admission = admission
        self._clock = clock
        self._permits: dict[str, Permit] = {}

    async def claim_slot(self, _principal: Principal) -> KeySlot:
        """See `Gate.claim_slot`."""
        return FreeSlot()

    def enter(self, ticket: Ticket, entrant: Entrant) -> None:
        """See `Gate.enter`."""
        try:
            permit = self.admission.try_acquire(
                ticket.ticket_id, ticket.num_choices, ticket.num_prompt_tokens, self._clock.now()
            )
        except ServeError as error:
            entrant.refuse(error)
            return
        self._permits[ticket.ticket_id] = permit
        entrant.admit(None)

    def note_started(self, ticket_id: str) -> None:
        """See `Gate.note_started`."""
        permit = self._permits.get(ticket_id)
        if permit is not None:
            self.admission.note_started(permit)

    def leave(self, ticket_id: str, _num_tokens: int) -> None:
        """See `Gate.leave`."""
        permit = self._permits.pop(ticket_id, None)
        if permit is not None:
            self.admission.release(permit)

    def statistics(self) -> AdmissionStatistics:
        """See `Gate.statistics`."""
        return self.admission.statistics()
