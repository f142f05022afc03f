"""AdmissionController: who may enter, so that the engine is never asked for more than it can hold.

Decides by two sums over live permits, checked before the engine is touched (CONTRACT.md sections 3 and 12):
sequences (every choice of every live request) up to `max_sequences` running and `queue_depth` waiting; prompt tokens
of requests without any output yet up to `queued_tokens`. Being full is temporary: a request that is too large for a
bound by itself enters when nothing else is counted under that bound, so that advice to retry is never a lie; what one
request may ask for has limits of its own. While the server drains, nobody enters.

Entering, being refused and leaving take constant time: shedding stays cheap under overload.

Does not know: clients and their quotas, the order in which the engine runs what was let in, how long anything takes.
"""

from dataclasses import dataclass

from tidegate.errors import InternalError, LimitFact, QueueFull, ServerDraining
from tidegate.lifecycle.drain import Drain

RETRY_AFTER_FULL_S = 1
RETRY_AFTER_DRAIN_S = 5
"""Long enough for a balancer to have noticed that this server goes away."""


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """Bounds over the whole server; all are at least 1, except `queue_depth`, which may be 0."""

    max_sequences: int
    queue_depth: int
    queued_tokens: int

    def __post_init__(self) -> None:
        if self.max_sequences < 1 or self.queue_depth < 0 or self.queued_tokens < 1:
            raise ValueError(f"admission limits out of range: {self}")


@dataclass(frozen=True, slots=True)
class Permit:
    """The right to be in the engine. Belongs to the controller that gave it; `number` is unique there."""

    number: int
    request_id: str
    num_choices: int
    num_prompt_tokens: int
    acquired_at: float


@dataclass(frozen=True, slots=True)
class AdmissionStatistics:
    """`num_requests`, `num_sequences`, `num_unstarted` and `queued_tokens` are of now; the rest are totals.

    `oldest_unstarted_at` is when the longest-waiting request was admitted; None when none waits for first output.
    `num_repeated_releases` counts releases of permits that were not live: harmless, and always a fault of ours.
    """

    num_requests: int
    num_sequences: int
    num_unstarted: int
    queued_tokens: int
    oldest_unstarted_at: float | None
    num_acquired: int
    num_released: int
    num_repeated_releases: int
    num_refused_depth: int
    num_refused_tokens: int
    num_refused_draining: int


class AdmissionController:
    """Gives out and takes back permits."""

    def __init__(self, limits: AdmissionLimits, drain: Drain) -> None:
        self.limits = limits
        self._drain = drain
        self._live: dict[int, Permit] = {}
        self._unstarted: dict[int, Permit] = {}
        self._num_sequences = 0
        self._queued_tokens = 0
        self._num_acquired = 0
        self._num_released = 0
        self._num_repeated_releases = 0
        self._num_refused_depth = 0
        self._num_refused_tokens = 0
        self._num_refused_draining = 0

    @property
    def num_live(self) -> int:
        """How many requests hold a permit: a drain ends when it is 0."""
        return len(self._live)

    def try_acquire(self, request_id: str, num_choices: int, num_prompt_tokens: int, now: float) -> Permit:
        """Lets a request in, at the instant `now` (seconds).

        Raises ServerDraining, or QueueFull with `limit.name` `queue_depth` or `queued_tokens`; nothing is held then.
        """
        if num_choices < 1 or num_prompt_tokens < 0:
            raise InternalError(f"a request of {num_choices} choices and {num_prompt_tokens} prompt tokens")
        if not self._drain.is_accepting:
            self._num_refused_draining += 1
            raise ServerDraining("The server is shutting down.", retry_after_s=RETRY_AFTER_DRAIN_S)
        self._check_depth(num_choices)
        self._check_tokens(num_prompt_tokens)
        self._num_acquired += 1
        permit = Permit(self._num_acquired, request_id, num_choices, num_prompt_tokens, now)
        self._live[permit.number] = permit
        self._unstarted[permit.number] = permit
        self._num_sequences += num_choices
        self._queued_tokens += num_prompt_tokens
        return permit

    def _check_depth(self, num_choices: int) -> None:
        num_waiting = self._num_sequences + num_choices - self.limits.max_sequences
        if num_waiting > self.limits.queue_depth and self._num_sequences:
            self._num_refused_depth += 1
            raise QueueFull(
                "The queue is full: too many sequences are waiting.",
                retry_after_s=RETRY_AFTER_FULL_S,
                limit=LimitFact("queue_depth", self.limits.queue_depth, num_waiting, "server"),
            )

    def _check_tokens(self, num_prompt_tokens: int) -> None:
        queued_tokens = self._queued_tokens + num_prompt_tokens
        if queued_tokens > self.limits.queued_tokens and self._queued_tokens:
            self._num_refused_tokens += 1
            raise QueueFull(
                "The queue is full: too many prompt tokens are waiting.",
                retry_after_s=RETRY_AFTER_FULL_S,
                limit=LimitFact("queued_tokens", self.limits.queued_tokens, queued_tokens, "server"),
            )

    def note_started(self, permit: Permit) -> None:
        """Records the request's first output: its prompt no longer waits. Idempotent, harmless after release."""
        if self._unstarted.pop(permit.number, None) is not None:
            self._queued_tokens -= permit.num_prompt_tokens

    def release(self, permit: Permit) -> bool:
        """Takes a permit back; says whether it was live. A repeated release changes nothing and is counted."""
        if self._live.pop(permit.number, None) is None:
            self._num_repeated_releases += 1
            return False
        self.note_started(permit)
        self._num_sequences -= permit.num_choices
        self._num_released += 1
        return True

    def statistics(self) -> AdmissionStatistics:
        """Returns a snapshot."""
        oldest = next(iter(self._unstarted.values()), None)
        return AdmissionStatistics(
            num_requests=len(self._live),
            num_sequences=self._num_sequences,
            num_unstarted=len(self._unstarted),
            queued_tokens=self._queued_tokens,
            oldest_unstarted_at=None if oldest is None else oldest.acquired_at,
            num_acquired=self._num_acquired,
            num_released=self._num_released,
            num_repeated_releases=self._num_repeated_releases,
            num_refused_depth=self._num_refused_depth,
            num_refused_tokens=self._num_refused_tokens,
            num_refused_draining=self._num_refused_draining,
        )

    def check_integrity(self) -> None:
        """Raises InternalError unless the sums equal what the live permits add up to. Linear in live requests."""
        num_sequences = sum(permit.num_choices for permit in self._live.values())
        queued_tokens = sum(permit.num_prompt_tokens for permit in self._unstarted.values())
        if num_sequences != self._num_sequences:
            raise InternalError(f"{self._num_sequences} sequences counted, permits hold {num_sequences}")
        if queued_tokens != self._queued_tokens:
            raise InternalError(f"{self._queued_tokens} queued tokens counted, permits hold {queued_tokens}")
        if not self._unstarted.keys() <= self._live.keys():
            raise InternalError("a released permit still counts as waiting")
        if self._num_acquired - self._num_released != len(self._live):
            raise InternalError(f"{self._num_acquired} acquired, {self._num_released} released, {len(self._live)} live")
