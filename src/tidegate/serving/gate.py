"""`Gate`: the port through which requests get into the engine: quotas, queue, permits.

Whoever implements it decides (`local_gate.py`), or asks the one that decides for several server processes
(`remote_gate.py`, `gate_server.py`).
"""

from typing import Protocol

from tidegate.errors import RateFacts, ServeError
from tidegate.lifecycle.principal import Principal
from tidegate.lifecycle.ticket import Ticket


class Entrant(Protocol):
    """Who waits at the gate. Exactly one of the two is called, on the event loop, unless the entrant left before."""

    def admit(self, rate: RateFacts | None) -> None:
        """The request may enter the engine now. `rate` is what its key has left; None for a key without quotas."""
        ...

    def refuse(self, error: ServeError) -> None:
        """The request may not enter, and holds nothing."""
        ...


class KeySlot(Protocol):
    """One of the requests that a key may have at once."""

    def release(self) -> None:
        """Gives the slot back. Idempotent."""
        ...


class Gate(Protocol):
    """All methods are called on the event loop."""

    async def claim_slot(self, principal: Principal) -> KeySlot:
        """Counts a request against its key's concurrency, before its body is read. Raises RateLimited."""
        ...

    def enter(self, ticket: Ticket, entrant: Entrant) -> None:
        """Asks for a permit. The answer may come before this returns, or any time later."""
        ...

    def note_started(self, ticket_id: str) -> None:
        """The request's first output came: its prompt no longer waits. Idempotent, harmless after the end."""
        ...

    def leave(self, ticket_id: str, num_tokens: int) -> None:
        """Gives back the permit, or the place in the queue; `num_tokens` were used, prompt and output. Idempotent."""
        ...
