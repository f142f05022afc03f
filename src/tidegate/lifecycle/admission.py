"""AdmissionController: who may enter the engine, who waits, and who is told no.

Decides, for one request, in this order: its key's rates, the drain, the bounds of the queue, whether its first token
can still come in time; then it waits for its turn (`fair_queue.py`), which may be now. `poll` says whose turn has come
(`engine_load.py`) and who has waited for nothing: past the queue's own deadline, past its caller's, or with a first
token that can no longer come in time (`forecast.py`). Being told no costs no block, no row and no word to the engine.

- Bounds: sequences that wait, here or behind the engine's rows, up to `queue_depth`; prompt tokens of requests without
  output, wherever they are, up to `queued_tokens`. Being full is temporary: what is too large for a bound by itself
  enters when nothing else counts under that bound, so that advice to retry is never a lie; what one request may ask
  for has limits of its own.
- A drain lets nobody in, and leaves alone who waits already: they were accepted.
- The veto (`deadline_watch.py`) runs at entry, and again whenever one that waits might have become late.

Entering, leaving and polling take O(log n) in what waits, apart from a look at all deadlines (O(n log n), rare);
being refused by a rate, the drain or a bound takes constant time, however long the queue is.

Does not know: clients, the event loop, engines, retries (a retry is a request like any other).
"""

from collections import Counter
from dataclasses import dataclass, field

from tidegate.errors import (
    DeadlineExceeded,
    DeadlineUnreachable,
    InternalError,
    LimitFact,
    NoCapacity,
    QueueFull,
    RateFacts,
    RateLimited,
    ServeError,
    ServerDraining,
)
from tidegate.inference.turn_rule import TurnRule
from tidegate.lifecycle.admission_statistics import AdmissionStatistics
from tidegate.lifecycle.cost_model import ChunkRule, CostModel, StepTotals
from tidegate.lifecycle.deadline_watch import DeadlineWatch
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.engine_load import EngineLoad, Permit
from tidegate.lifecycle.forecast import Forecast
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.quota import KeyQuotas
from tidegate.lifecycle.ticket import Ticket
from tidegate.lifecycle.waiting_room import Waiter, WaitingRoom

RETRY_AFTER_FULL_S = 1
RETRY_AFTER_NO_CAPACITY_S = 5
"""Who has waited for the whole queue deadline meets an overload that will not be over in a second."""
RETRY_AFTER_DRAIN_S = 5
"""Long enough for a balancer to have noticed that this server goes away."""
ON_TIME_S = 0.001
"""A first token that comes this much later than predicted still counts as predicted."""


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """Bounds over the whole server; all are at least 1, except `queue_depth`, which may be 0.

    `kv_overcommit`: peak KV blocks of all that is in the engine, over the blocks that there are. `turns`: how
    priorities count among those that wait.
    """

    max_sequences: int
    queue_depth: int
    queued_tokens: int
    queue_deadline_ms: int = 30_000
    kv_overcommit: float = 4.0
    turns: TurnRule = field(default_factory=TurnRule)

    def __post_init__(self) -> None:
        least = min(self.max_sequences, self.queued_tokens, self.queue_deadline_ms, self.kv_overcommit)
        if least < 1 or self.queue_depth < 0:
            raise ValueError(f"admission limits out of range: {self}")


@dataclass(frozen=True, slots=True)
class Grant:
    """The request may enter the engine now. `rate` is what its key has left; None for a key without rates."""

    ticket_id: str
    rate: RateFacts | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that waited is told no, and holds nothing any more."""

    ticket_id: str
    error: ServeError


Decision = Grant | Refusal


class AdmissionController:
    """One model's gate. With `declared` costs nothing is learned; `chunks` is how the engine cuts long prompts.

    `quotas` are shared by the gates of all models: a key's quotas count over all of them.
    """

    def __init__(
        self,
        limits: AdmissionLimits,
        drain: Drain,
        *,
        declared: CostModel | None = None,
        chunks: ChunkRule | None = None,
        quotas: KeyQuotas | None = None,
    ) -> None:
        self.limits = limits
        self._drain = drain
        self._quotas = KeyQuotas() if quotas is None else quotas
        self._has_own_quotas = quotas is None
        self._room = WaitingRoom(limits.turns)
        self._load = EngineLoad(limits.max_sequences)
        self._forecast = Forecast(declared, chunks)
        self._watch = DeadlineWatch(self._room, self._load, self._forecast)
        self._num_entered = self._num_acquired = self._num_released = self._num_withdrawn = 0
        self._num_refused_waiting = 0
        self._refusals: Counter[str] = Counter()
        self._num_predictions = self._num_late_predictions = 0
        self._prediction_error_s = 0.0

    @property
    def num_live(self) -> int:
        """How many requests wait or are in the engine."""
        return len(self._room) + len(self._load.permits)

    # ---- what happens ----

    def claim_slot(self, key_id: str, quotas: Quotas, now: float) -> None:
        """Counts one more request of a key with quotas. Raises RateLimited (`concurrency`); nothing is held then."""
        try:
            self._quotas.claim_slot(key_id, quotas, now)
        except RateLimited as error:
            self._count_refusal(error)
            raise

    def release_slot(self, key_id: str) -> None:
        """Gives one slot back, once."""
        self._quotas.release_slot(key_id)

    def enter(self, ticket: Ticket, now: float) -> None:
        """Gives a request a place in the queue; the next `poll` may let it in.

        Raises RateLimited, ServerDraining, QueueFull, DeadlineExceeded or DeadlineUnreachable; nothing is held then.
        """
        if ticket.num_choices < 1 or min(ticket.num_prompt_tokens, ticket.num_output_tokens, ticket.num_blocks) < 0:
            raise InternalError(f"a senseless request: {ticket}")
        if ticket.ticket_id in self._room or ticket.ticket_id in self._load.permits:
            raise InternalError(f"ticket {ticket.ticket_id} enters twice")
        try:
            self._quotas.check(ticket.key_id, ticket.quotas, now)
            if not self._drain.is_accepting:
                raise ServerDraining("The server is shutting down.", retry_after_s=RETRY_AFTER_DRAIN_S)
            self._check_depth(ticket)
            self._check_tokens(ticket)
            self._place(ticket, now)
        except InternalError:
            raise
        except ServeError as error:
            self._count_refusal(error)
            raise
        self._num_entered += 1

    def note_started(self, ticket_id: str, now: float) -> None:
        """Records the request's first output. Idempotent, harmless after the end."""
        permit = self._load.note_started(ticket_id, now)
        if permit is None:
            return
        if self._load.num_started == 1:
            self._watch.note_learned(now)
        if permit.predicted_at is not None:
            self._num_predictions += 1
            self._num_late_predictions += now > permit.predicted_at + ON_TIME_S
            self._prediction_error_s += abs(now - permit.predicted_at)

    def leave(self, ticket_id: str, num_tokens: int, now: float) -> bool:
        """Takes back a permit or a place; says whether there was one. `num_tokens` were used, prompt and output."""
        permit = self._load.release(ticket_id, now)
        if permit is not None:
            self._num_released += 1
            if permit.started_at is not None:
                self._forecast.row_times.observe(now - permit.started_at)
            if permit.reservation is not None:
                self._quotas.settle(permit.reservation, permit.ticket.quotas, num_tokens, now)
            return True
        waiter = self._room.remove(ticket_id)
        if waiter is None:
            return False
        self._num_withdrawn += 1
        if waiter.reservation is not None:
            self._quotas.settle(waiter.reservation, waiter.ticket.quotas, num_tokens, now)
        return True

    def learn_chunks(self, chunks: ChunkRule) -> None:
        """Takes how the engine cuts long prompts."""
        self._forecast.chunks = chunks

    def resize(self, num_rows: int, num_engines: int) -> None:
        """Takes how many sequences run at once, in how many engines, where that changes while the server runs."""
        self._load.resize(num_rows, num_engines)

    def observe(self, totals: StepTotals, num_blocks: int | None, now: float) -> None:
        """Takes what the engine says of itself: what it has done, and how many KV blocks it has (None: not known)."""
        self._load.capacity_blocks = None if num_blocks is None else num_blocks * self.limits.kv_overcommit
        if self._forecast.observe(totals):
            self._watch.note_learned(now)

    # ---- what follows ----

    def poll(self, now: float) -> list[Decision]:
        """Returns, once each, who may enter and who waits no longer. Call it after every call above, and when woken."""
        decisions: list[Decision] = [
            self._refuse(waiter, self._why_overdue(waiter, now), now) for waiter in self._room.overdue(now)
        ]
        for hopeless, error in self._watch.find_lost(now):
            lost = self._room.remove(hopeless.ticket_id)
            assert lost is not None
            decisions.append(self._refuse(lost, error, now))
        while (ticket := self._room.first()) is not None and self._load.has_room(ticket):
            waiter = self._room.pop()
            self._load.acquire(Permit(ticket, now, waiter.reservation, waiter.predicted_at))
            self._num_acquired += 1
            decisions.append(Grant(ticket.ticket_id, self._quotas.facts(ticket.key_id, ticket.quotas, now)))
        return decisions

    def next_wake_at(self) -> float | None:
        """Returns when to `poll` if nothing happens until then; None for never."""
        if not len(self._room):
            return None
        wakes = (self._room.next_due_at(), self._watch.wake_at)
        return min(wake for wake in wakes if wake is not None)

    def statistics(self) -> AdmissionStatistics:
        """Returns a snapshot."""
        load, room = self._load, self._room
        return AdmissionStatistics(
            num_requests=len(load.permits),
            num_sequences=load.num_sequences,
            num_blocks=load.num_blocks,
            num_waiting=len(room),
            num_waiting_sequences=room.num_sequences,
            num_unstarted=len(room) + len(load.unstarted),
            queued_tokens=room.num_tokens + load.num_unstarted_tokens,
            oldest_waiting_at=room.oldest_at,
            num_slots=self._quotas.num_slots,
            num_keys=self._quotas.num_keys,
            num_entered=self._num_entered,
            num_acquired=self._num_acquired,
            num_released=self._num_released,
            num_withdrawn=self._num_withdrawn,
            refusals=dict(self._refusals),
            num_predictions=self._num_predictions,
            num_late_predictions=self._num_late_predictions,
            prediction_error_s=self._prediction_error_s,
        )

    def check_integrity(self) -> None:
        """Raises InternalError unless all sums equal what they stand for. Linear in live requests."""
        self._load.check_integrity()
        self._room.check_integrity()
        num_gone = self._num_acquired + self._num_withdrawn + self._num_refused_waiting
        if self._num_entered != num_gone + len(self._room):
            raise InternalError(f"{self._num_entered} entered, {num_gone} went on, {len(self._room)} wait")
        if self._num_acquired - self._num_released != len(self._load.permits):
            raise InternalError(f"{self._num_acquired} acquired, {self._num_released} released")
        if self._has_own_quotas and not self.num_live and self._quotas.num_reservations:
            raise InternalError(f"{self._quotas.num_reservations} reservations of requests that have gone")

    # ---- entering ----

    def _check_depth(self, ticket: Ticket) -> None:
        num_live = self._load.num_sequences + self._room.num_sequences
        num_waiting = num_live + ticket.num_choices - self._load.max_sequences
        if len(self._room) or not self._load.has_room(ticket):
            num_waiting = max(num_waiting, self._room.num_sequences + ticket.num_choices)
        if num_waiting > self.limits.queue_depth and num_live:
            raise QueueFull(
                "The queue is full: too many sequences are waiting.",
                retry_after_s=RETRY_AFTER_FULL_S,
                limit=LimitFact("queue_depth", self.limits.queue_depth, num_waiting, "server"),
            )

    def _check_tokens(self, ticket: Ticket) -> None:
        num_before = self._room.num_tokens + self._load.num_unstarted_tokens
        queued_tokens = num_before + ticket.num_prompt_tokens
        if queued_tokens > self.limits.queued_tokens and num_before:
            raise QueueFull(
                "The queue is full: too many prompt tokens are waiting.",
                retry_after_s=RETRY_AFTER_FULL_S,
                limit=LimitFact("queued_tokens", self.limits.queued_tokens, queued_tokens, "server"),
            )

    def _place(self, ticket: Ticket, now: float) -> None:
        waiter = Waiter(ticket, now, now + self.limits.queue_deadline_ms / 1000)
        must_start_by = ticket.must_start_by
        if must_start_by is not None and now >= must_start_by:
            raise DeadlineExceeded("The caller's time was over before the request could start.")
        self._room.add(waiter)
        try:
            self._watch.foretell(waiter, now)
        except DeadlineUnreachable:
            self._room.remove(ticket.ticket_id)
            raise
        waiter.reservation = self._quotas.reserve(ticket.key_id, ticket.quotas, ticket.num_tokens, now)

    # ---- waiting for nothing ----

    def _why_overdue(self, waiter: Waiter, now: float) -> ServeError:
        must_start_by = waiter.ticket.must_start_by
        if must_start_by is not None and must_start_by <= now:
            return DeadlineExceeded("The caller's time was over before the request could start.")
        return NoCapacity(
            "The request has waited for as long as it may, and there was no room.",
            retry_after_s=RETRY_AFTER_NO_CAPACITY_S,
            limit=LimitFact(
                "queue_deadline_ms", self.limits.queue_deadline_ms, round((now - waiter.entered_at) * 1000), "server"
            ),
        )

    def _refuse(self, waiter: Waiter, error: ServeError, now: float) -> Refusal:
        """The waiter has been taken out of the room."""
        self._num_refused_waiting += 1
        self._count_refusal(error)
        if waiter.reservation is not None:
            self._quotas.cancel(waiter.reservation, waiter.ticket.quotas, now)
        return Refusal(waiter.ticket.ticket_id, error)

    def _count_refusal(self, error: ServeError) -> None:
        self._refusals[_REASONS.get(type(error)) or (error.limit.name if error.limit is not None else "other")] += 1


_REASONS: dict[type[ServeError], str] = {
    NoCapacity: "no_capacity",
    DeadlineExceeded: "deadline_exceeded",
    DeadlineUnreachable: "deadline_unreachable",
    ServerDraining: "server_draining",
}
"""Limits are counted under their names."""
