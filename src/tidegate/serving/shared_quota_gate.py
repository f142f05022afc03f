"""SharedQuotaGate: a `Gate` whose keys' quotas are counted by a store that several servers share.

The store is asked before the gate within, which then counts no quotas of its own: a place that it refuses, or takes
back, counts for nothing, as everywhere. While the store does not answer, either the gate within counts alone, so that
each server gives a key its whole quota, or keys with quotas are refused: `RefusesWhenAway` says which. Keys without
quotas never wait for the store.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tidegate.errors import InternalError, NoCapacity, RateFacts, RateLimited, ServeError
from tidegate.lifecycle.admission_statistics import AdmissionStatistics
from tidegate.lifecycle.principal import Principal, Quotas
from tidegate.lifecycle.quota_port import QuotaStatistics, QuotaStore, QuotaUnavailable, SharedReservation, SharedSlot
from tidegate.lifecycle.ticket import Ticket
from tidegate.serving.gate import Entrant, Gate, KeySlot

CLOSE_S = 1.0
AWAY = "The quotas of this key cannot be looked up; try again soon."


class InnerGate(Gate, Protocol):
    """A gate of this process."""

    def statistics(self) -> AdmissionStatistics: ...

    def statistics_of(self, model: str) -> AdmissionStatistics: ...

    def close(self) -> None: ...


class RunningStore(QuotaStore, Protocol):
    """A store whose work in the background begins with `start`, on the running event loop."""

    def start(self) -> None: ...

    async def aclose(self) -> None: ...


@dataclass(slots=True)
class _Asking:
    """A ticket for which the store is being asked; `num_tokens` were used when it left, None while it has not."""

    num_tokens: int | None = None


class SharedQuotaGate:
    """Implements `Gate`. `start`, in the end `aclose`. `on_fault` hears of faults that were contained."""

    def __init__(
        self,
        inner: InnerGate,
        store: RunningStore,
        *,
        refuses_when_away: bool,
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self.inner = inner
        self._store = store
        self._refuses_when_away = refuses_when_away
        self._on_fault = on_fault
        self._asking: dict[str, _Asking] = {}
        self._reserved: dict[str, SharedReservation] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusals: Counter[str] = Counter()

    def start(self) -> None:
        """See `RunningStore.start`."""
        self._store.start()

    async def aclose(self) -> None:
        """Tells the store what is still to be told, for a moment at most, and closes both. Idempotent."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_S)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._store.aclose()
        self.inner.close()

    def close(self) -> None:
        """Stops the timers of the gate within."""
        self.inner.close()

    def statistics_of(self, model: str) -> AdmissionStatistics:
        """Returns the accounts of one model, without what the store refused."""
        return self.inner.statistics_of(model)

    def statistics(self) -> AdmissionStatistics:
        """Returns the accounts of the gate within, with what the store refused."""
        inner = self.inner.statistics()
        refusals = Counter(inner.refusals)
        refusals.update(self._refusals)
        num_slots = inner.num_slots + self._store.statistics().num_slots
        return replace(inner, refusals=dict(refusals), num_slots=num_slots)

    def quota_statistics(self) -> QuotaStatistics:
        """Returns the store's accounts."""
        return self._store.statistics()

    @property
    def num_open(self) -> int:
        """Tickets that the store is asked for or has counted, and what it is still to be told."""
        return len(self._asking) + len(self._reserved) + len(self._tasks)

    async def claim_slot(self, principal: Principal) -> KeySlot:
        """See `Gate.claim_slot`. Raises NoCapacity while the store is away, where that refuses."""
        if principal.quotas.concurrency is None:
            return await self.inner.claim_slot(principal)
        try:
            slot = await self._store.claim_slot(principal.key_id, principal.quotas)
        except RateLimited as error:
            self._count(error)
            raise
        except QuotaUnavailable:
            if self._refuses_when_away:
                raise self._away() from None
            return await self.inner.claim_slot(principal)
        return _Slot(self, slot)

    def enter(self, ticket: Ticket, entrant: Entrant) -> None:
        """See `Gate.enter`."""
        if not ticket.quotas.has_rate:
            self.inner.enter(ticket, entrant)
            return
        if ticket.ticket_id in self._asking or ticket.ticket_id in self._reserved:
            raise InternalError(f"ticket {ticket.ticket_id} enters twice")
        self._asking[ticket.ticket_id] = asking = _Asking()
        self.later(self._ask(ticket, entrant, asking))

    def note_started(self, ticket_id: str) -> None:
        """See `Gate.note_started`."""
        self.inner.note_started(ticket_id)

    def leave(self, ticket_id: str, num_tokens: int) -> None:
        """See `Gate.leave`."""
        asking = self._asking.get(ticket_id)
        if asking is not None:
            asking.num_tokens = num_tokens
            return
        self.inner.leave(ticket_id, num_tokens)
        self._settle(ticket_id, num_tokens)

    def release_slot(self, slot: SharedSlot) -> None:
        """Gives a slot of the store back, soon."""
        self.later(self._store.release_slot(slot))

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Carries out `work` beside everything else."""
        task = asyncio.get_running_loop().create_task(work, name="quotas")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def take_back(self, ticket_id: str) -> None:
        """The gate within refused a ticket: it counts for nothing."""
        self._settle(ticket_id, None)

    async def _ask(self, ticket: Ticket, entrant: Entrant, asking: _Asking) -> None:
        """Asks the store, and then the gate within, unless the ticket has left. Tells the entrant once."""
        ticket_id = ticket.ticket_id
        try:
            reservation = await self._store.reserve(ticket.key_id, ticket.quotas, ticket.num_tokens)
        except RateLimited as error:
            self._end_asking(ticket_id, entrant, asking, error)
            self._count(error)
            return
        except QuotaUnavailable:
            refusal = self._away() if self._refuses_when_away else None
            if self._end_asking(ticket_id, entrant, asking, refusal) and refusal is None:
                self._enter_inner(ticket, entrant)
            return
        except Exception as fault:
            self._on_fault(fault)
            self._end_asking(ticket_id, entrant, asking, InternalError("An internal error occurred."))
            return
        self._reserved[ticket_id] = reservation
        if self._end_asking(ticket_id, entrant, asking, None):
            counted = replace(ticket, quotas=Quotas())
            self._enter_inner(counted, _CountedEntrant(self, ticket_id, entrant, reservation.facts))
        else:
            self._settle(ticket_id, asking.num_tokens)

    def _end_asking(self, ticket_id: str, entrant: Entrant, asking: _Asking, error: ServeError | None) -> bool:
        """Returns whether the ticket is still wanted; it is told `error` if there is one."""
        self._asking.pop(ticket_id, None)
        if asking.num_tokens is not None:
            return False
        if error is not None:
            self._tell(entrant, error)
        return True

    def _enter_inner(self, ticket: Ticket, entrant: Entrant) -> None:
        try:
            self.inner.enter(ticket, entrant)
        except Exception as fault:
            self._on_fault(fault)
            self.leave(ticket.ticket_id, 0)
            self._tell(entrant, InternalError("An internal error occurred."))

    def _tell(self, entrant: Entrant, error: ServeError) -> None:
        try:
            entrant.refuse(error)
        except Exception as fault:
            self._on_fault(fault)

    def _settle(self, ticket_id: str, num_tokens: int | None) -> None:
        reservation = self._reserved.pop(ticket_id, None)
        if reservation is not None:
            self.later(self._store.settle(reservation, num_tokens))

    def _count(self, error: RateLimited) -> None:
        if error.limit is not None:
            self._refusals[error.limit.name] += 1

    def _away(self) -> NoCapacity:
        self._refusals["no_capacity"] += 1
        return NoCapacity(AWAY)


class _Slot:
    """Implements `KeySlot`."""

    def __init__(self, gate: SharedQuotaGate, slot: SharedSlot) -> None:
        self._gate = gate
        self._slot: SharedSlot | None = slot

    def release(self) -> None:
        """See `KeySlot.release`."""
        slot, self._slot = self._slot, None
        if slot is not None:
            self._gate.release_slot(slot)


class _CountedEntrant:
    """Implements `Entrant` for a ticket that the store has counted."""

    def __init__(self, gate: SharedQuotaGate, ticket_id: str, entrant: Entrant, facts: RateFacts) -> None:
        self._gate = gate
        self._ticket_id = ticket_id
        self._entrant = entrant
        self._facts = facts

    def admit(self, rate: RateFacts | None) -> None:  # noqa: ARG002 the gate within counts nothing
        """See `Entrant.admit`."""
        self._entrant.admit(self._facts)

    def refuse(self, error: ServeError) -> None:
        """See `Entrant.refuse`."""
        self._gate.take_back(self._ticket_id)
        self._entrant.refuse(error)
