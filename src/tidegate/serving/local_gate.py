"""LocalGate: the `Gate` of one server process: the shell around the machine that decides.

Feeds the machine with what happens and with the time, and carries out what it says: entrants are called on the event
loop, one after the other. One timer stands for everything that time alone decides. An entrant may do anything in its
call, leaving and entering included; one that raises loses its place and harms nobody else.
"""

import asyncio
from collections.abc import Callable

from tidegate.clock import Clock
from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.errors import InternalError, ServeError
from tidegate.lifecycle.admission import AdmissionController, Decision, Grant
from tidegate.lifecycle.admission_statistics import AdmissionStatistics
from tidegate.lifecycle.cost_model import StepTotals
from tidegate.lifecycle.principal import Principal
from tidegate.lifecycle.ticket import Ticket
from tidegate.serving.gate import Entrant, KeySlot

OBSERVE_INTERVAL_S = 0.1
"""How often the engine's totals are looked at, at most: what is learned changes slowly."""
MIN_TIMER_S = 0.001


class FreeSlot:
    """The slot of a key without a limit."""

    def release(self) -> None:
        """Nothing is held."""


class HeldSlot:
    """One of a key's slots."""

    def __init__(self, admission: AdmissionController, key_id: str) -> None:
        self._admission: AdmissionController | None = admission
        self._key_id = key_id

    def release(self) -> None:
        """See `KeySlot.release`."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission.release_slot(self._key_id)


class LocalGate:
    """Implements `Gate`. `engine` gives the engine's present accounts; None where nobody needs to learn from them."""

    def __init__(
        self,
        admission: AdmissionController,
        clock: Clock,
        engine: Callable[[], EngineStatus] | None = None,
        *,
        on_fault: Callable[[BaseException], None] | None = None,
        has_rows: bool = False,
    ) -> None:
        """`has_rows`: how many sequences run at once is the engine's word, and changes, as with several of them."""
        self.admission = admission
        self._has_rows = has_rows
        self._clock = clock
        self._engine = engine
        self._on_fault = on_fault
        self._observe_at = 0.0
        self._entrants: dict[str, Entrant] = {}
        self._is_settling = False
        self._entering: str | None = None
        self._fault: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: float | None = None

    async def claim_slot(self, principal: Principal) -> KeySlot:
        """See `Gate.claim_slot`."""
        if principal.quotas.concurrency is None:
            return FreeSlot()
        self.admission.claim_slot(principal.key_id, principal.quotas, self._clock.now())
        return HeldSlot(self.admission, principal.key_id)

    def enter(self, ticket: Ticket, entrant: Entrant) -> None:
        """See `Gate.enter`."""
        now = self._clock.now()
        self._observe(now)
        try:
            self.admission.enter(ticket, now)
        except ServeError as error:
            entrant.refuse(error)
            return
        self._entrants[ticket.ticket_id] = entrant
        outer, self._entering = self._entering, ticket.ticket_id
        self.settle()
        self._entering = outer
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def note_started(self, ticket_id: str) -> None:
        """See `Gate.note_started`."""
        self.admission.note_started(ticket_id, self._clock.now())
        self.settle()

    def leave(self, ticket_id: str, num_tokens: int) -> None:
        """See `Gate.leave`."""
        self._entrants.pop(ticket_id, None)
        if self.admission.leave(ticket_id, num_tokens, self._clock.now()):
            self.settle()

    def statistics(self) -> AdmissionStatistics:
        """Returns a snapshot of the accounts."""
        return self.admission.statistics()

    def statistics_of(self, _model: str) -> AdmissionStatistics:
        """Returns the same: there is one model."""
        return self.statistics()

    def note_engine_changed(self) -> None:
        """The engine has other rows now: who waits may enter."""
        self._observe_at = 0.0
        self.settle()

    def settle(self) -> None:
        """Carries out everything that the machine has decided by now, and sets the timer for what comes next."""
        if self._is_settling:
            return
        self._is_settling = True
        try:
            while decisions := self._poll():
                for decision in decisions:
                    self._carry_out(decision)
        finally:
            self._is_settling = False
        self._arm()

    def close(self) -> None:
        """Stops the timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timer_at = None

    def _poll(self) -> list[Decision]:
        now = self._clock.now()
        self._observe(now)
        return self.admission.poll(now)

    def _carry_out(self, decision: Decision) -> None:
        """Tells one entrant. Who has left in the meantime is not told."""
        entrant = self._entrants.pop(decision.ticket_id, None)
        if entrant is None:
            return
        try:
            if isinstance(decision, Grant):
                entrant.admit(decision.rate)
            else:
                entrant.refuse(decision.error)
        except Exception as fault:
            self._contain(decision.ticket_id, entrant, fault)

    def _contain(self, ticket_id: str, entrant: Entrant, fault: Exception) -> None:
        """An entrant failed. One that is entering right now hears of it from `enter`; others are refused."""
        self.admission.leave(ticket_id, 0, self._clock.now())
        if ticket_id == self._entering:
            self._fault = fault
            return
        if self._on_fault is not None:
            self._on_fault(fault)
        try:
            entrant.refuse(InternalError("An internal error occurred."))
        except Exception as second:
            if self._on_fault is not None:
                self._on_fault(second)

    def _observe(self, now: float) -> None:
        if self._engine is None or now < self._observe_at:
            return
        self._observe_at = now + OBSERVE_INTERVAL_S
        status = self._engine()
        model = status.model
        if model is not None and self._has_rows:
            self.admission.resize(model.max_sequences, status.num_engines)
        self.admission.observe(step_totals(status.gauges), None if model is None else model.num_blocks, now)

    def _arm(self) -> None:
        wake_at = self.admission.next_wake_at()
        if wake_at == self._timer_at and (self._timer is None or not self._timer.cancelled()):
            return
        self.close()
        if wake_at is not None:
            delay_s = max(MIN_TIMER_S, wake_at - self._clock.now())
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._wake)
            self._timer_at = wake_at

    def _wake(self) -> None:
        self._timer = self._timer_at = None
        self.settle()


def step_totals(gauges: EngineGauges) -> StepTotals:
    """Returns what admission learns from, out of an engine's gauges."""
    return StepTotals(
        prefill_steps_s=gauges.prefill_steps_s,
        num_prefill_steps=gauges.num_prefill_steps,
        num_mixed_steps=gauges.num_mixed_steps,
        num_prefill_tokens=gauges.num_prefill_tokens,
        decode_steps_s=gauges.decode_steps_s,
        num_decode_steps=gauges.num_decode_steps,
    )
