"""EngineLoad: what has been let into the engine and has not come back, as sums.

Decides whether one more request may go in. Rows: while fewer sequences are in than the engine has rows and
`look_ahead` more, the next one goes in, whole: it may overshoot by its own width, since a row that waits for a wide
request to fit would be idle. Blocks: the peaks of all that is in stay within the capacity, except for a request alone,
so that none is too large for ever. The look-ahead is what keeps a row busy: when a sequence ends, its successor is in
the engine already, instead of a step away. Everything else waits outside, where fairness and deadlines still count.

All operations take constant time, except `check_integrity`. Does not know who waits, nor what work takes.
"""

from dataclasses import dataclass

from tidegate.errors import InternalError
from tidegate.lifecycle.quota import Reservation
from tidegate.lifecycle.ticket import Ticket

ROWS_FOR_ONE_AHEAD = 16
"""One sequence waits in the engine for every so many rows, and at least one where there is more than one row. With a
single row an idle engine starts its successor at once; a look-ahead would only add a place to every queue."""


def look_ahead(max_sequences: int) -> int:
    """Returns how many sequences may wait inside an engine of so many rows."""
    return 0 if max_sequences == 1 else max(1, max_sequences // ROWS_FOR_ONE_AHEAD)


@dataclass(slots=True)
class Permit:
    """A request in the engine. `predicted_at` is when its first token was expected, said when it entered the gate."""

    ticket: Ticket
    acquired_at: float
    reservation: Reservation | None = None
    predicted_at: float | None = None
    started_at: float | None = None


class EngineLoad:
    """`capacity_blocks` is None until somebody knows it. Several engines behind one port count as one here."""

    def __init__(self, max_sequences: int) -> None:
        self.max_sequences = max_sequences
        self.num_engines = 1
        self.capacity_blocks: float | None = None
        self.permits: dict[str, Permit] = {}
        self.unstarted: dict[str, Permit] = {}
        """Those without output, in the order in which they came."""
        self.num_sequences = 0
        self.num_blocks = 0
        self.num_unstarted_tokens = 0
        self.prefill_since = 0.0
        """Since when the oldest of the unstarted is under way."""
        self.row_freed_at = 0.0
        """When a row was given back last, or the last one taken."""
        self._num_rows = max_sequences + look_ahead(max_sequences)

    def resize(self, max_sequences: int, num_engines: int = 1) -> None:
        """There are so many rows now, in so many engines. What is in stays in, even where it is more."""
        self.max_sequences = max_sequences
        self.num_engines = num_engines
        self._num_rows = max_sequences + look_ahead(max_sequences)

    @property
    def num_started(self) -> int:
        return len(self.permits) - len(self.unstarted)

    def has_room(self, ticket: Ticket) -> bool:
        """Says whether the request may go in now."""
        if not self.permits:
            return True
        if self.num_sequences >= self._num_rows:
            return False
        return self.capacity_blocks is None or self.num_blocks + ticket.num_blocks <= self.capacity_blocks

    def acquire(self, permit: Permit) -> None:
        """Takes a request in."""
        ticket = permit.ticket
        if not self.unstarted:
            self.prefill_since = permit.acquired_at
        if self.num_sequences < self.max_sequences:
            self.row_freed_at = permit.acquired_at
        self.permits[ticket.ticket_id] = self.unstarted[ticket.ticket_id] = permit
        self.num_sequences += ticket.num_choices
        self.num_blocks += ticket.num_blocks
        self.num_unstarted_tokens += ticket.num_prompt_tokens

    def note_started(self, ticket_id: str, now: float) -> Permit | None:
        """The request's first output came. Returns its permit, once."""
        permit = self.unstarted.pop(ticket_id, None)
        if permit is None:
            return None
        permit.started_at = now
        self.num_unstarted_tokens -= permit.ticket.num_prompt_tokens
        self.prefill_since = now
        return permit

    def release(self, ticket_id: str, now: float) -> Permit | None:
        """The engine holds nothing of the request any more. Returns its permit, once."""
        permit = self.permits.pop(ticket_id, None)
        if permit is None:
            return None
        if permit.started_at is None:
            if next(iter(self.unstarted)) == ticket_id:
                self.prefill_since = now
            del self.unstarted[ticket_id]
            self.num_unstarted_tokens -= permit.ticket.num_prompt_tokens
        self.num_sequences -= permit.ticket.num_choices
        self.num_blocks -= permit.ticket.num_blocks
        self.row_freed_at = now
        return permit

    def check_integrity(self) -> None:
        """Raises InternalError unless the sums equal what the permits add up to. Linear."""
        tickets = [permit.ticket for permit in self.permits.values()]
        sums = {
            "sequences": (self.num_sequences, sum(ticket.num_choices for ticket in tickets)),
            "blocks": (self.num_blocks, sum(ticket.num_blocks for ticket in tickets)),
            "unstarted tokens": (
                self.num_unstarted_tokens,
                sum(permit.ticket.num_prompt_tokens for permit in self.unstarted.values()),
            ),
        }
        for name, (counted, held) in sums.items():
            if counted != held:
                raise InternalError(f"{counted} {name} counted, permits hold {held}")
        if not self.unstarted.keys() <= self.permits.keys():
            raise InternalError("a released permit still counts as waiting for output")
