"""WaitingRoom: everybody at the gate, by turn and by patience.

Holds the fair queue, the sums over it, and when each one has to be told no. A heap of those instants is cleaned as it
comes up, and when void entries are the majority. Does not know who may enter, nor what a first token takes.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.errors import InternalError
from tidegate.inference.turn_rule import BY_PRIORITY, TurnRule
from tidegate.lifecycle.fair_queue import FairQueue
from tidegate.lifecycle.quota import Reservation
from tidegate.lifecycle.ticket import Ticket


@dataclass(slots=True)
class Waiter:
    """One request at the gate. `gives_up_at`: when the queue's own deadline has passed."""

    ticket: Ticket
    entered_at: float
    gives_up_at: float
    reservation: Reservation | None = None
    predicted_at: float | None = None

    @property
    def due_at(self) -> float:
        """When there is nothing left to wait for: the least of the queue's deadline and the caller's."""
        must_start_by = self.ticket.must_start_by
        return self.gives_up_at if must_start_by is None else min(self.gives_up_at, must_start_by)


class WaitingRoom:
    """Waiters by ticket id, in the order in which they came."""

    def __init__(self, turns: TurnRule = BY_PRIORITY) -> None:
        self._waiters: dict[str, Waiter] = {}
        self._queue = FairQueue(turns)
        self._dues: list[tuple[float, int, Waiter]] = []
        self._num_added = 0
        self.num_sequences = 0
        self.num_tokens = 0
        self.num_hurried = 0
        """Those with a deadline for their first token."""

    def __len__(self) -> int:
        return len(self._waiters)

    def __contains__(self, ticket_id: str) -> bool:
        return ticket_id in self._waiters

    @property
    def oldest_at(self) -> float | None:
        """When the one that has waited longest came."""
        oldest = next(iter(self._waiters.values()), None)
        return None if oldest is None else oldest.entered_at

    def add(self, waiter: Waiter) -> None:
        """Takes one in. Raises InternalError when one of its id waits already."""
        ticket = waiter.ticket
        self._queue.add(ticket)
        self._waiters[ticket.ticket_id] = waiter
        self._num_added += 1
        heapq.heappush(self._dues, (waiter.due_at, self._num_added, waiter))
        self._count(ticket, 1)

    def first(self) -> Ticket | None:
        """Returns who goes next."""
        return self._queue.first()

    def pop(self) -> Waiter:
        """Takes out who goes next. Raises InternalError when nobody waits."""
        return self._take_out(self._queue.pop())

    def remove(self, ticket_id: str) -> Waiter | None:
        """Takes one out, if it waits."""
        if ticket_id not in self._waiters:
            return None
        return self._take_out(self._queue.remove(ticket_id))

    def overdue(self, now: float) -> Iterator[Waiter]:
        """Takes out, one after the other, those that are due at `now`."""
        while (due_at := self.next_due_at()) is not None and due_at <= now:
            waiter = heapq.heappop(self._dues)[2]
            self._queue.remove(waiter.ticket.ticket_id)
            yield self._take_out(waiter.ticket)

    def next_due_at(self) -> float | None:
        """Returns when the next one is due."""
        while self._dues and not self._is_here(self._dues[0][2]):
            heapq.heappop(self._dues)
        return self._dues[0][0] if self._dues else None

    def in_order(self) -> Iterator[Ticket]:
        """Yields the tickets in their turn. Nothing may change meanwhile."""
        return self._queue.in_order()

    def check_integrity(self) -> None:
        """Raises InternalError unless the sums equal what waits. Linear."""
        tickets = [waiter.ticket for waiter in self._waiters.values()]
        if {ticket.ticket_id for ticket in self.in_order()} != set(self._waiters):
            raise InternalError("the queue and the room disagree about who waits")
        counted = (self.num_sequences, self.num_tokens, self.num_hurried)
        held = (
            sum(ticket.num_choices for ticket in tickets),
            sum(ticket.num_prompt_tokens for ticket in tickets),
            sum(ticket.must_start_by is not None for ticket in tickets),
        )
        if counted != held:
            raise InternalError(f"waiting: {counted} counted, tickets hold {held}")

    def _take_out(self, ticket: Ticket) -> Waiter:
        waiter = self._waiters.pop(ticket.ticket_id)
        self._count(ticket, -1)
        if len(self._dues) > 2 * len(self._waiters) + 16:
            self._dues = [due for due in self._dues if self._is_here(due[2])]
            heapq.heapify(self._dues)
        return waiter

    def _is_here(self, waiter: Waiter) -> bool:
        return self._waiters.get(waiter.ticket.ticket_id) is waiter

    def _count(self, ticket: Ticket, sign: int) -> None:
        self.num_sequences += sign * ticket.num_choices
        self.num_tokens += sign * ticket.num_prompt_tokens
        self.num_hurried += sign * (ticket.must_start_by is not None)
