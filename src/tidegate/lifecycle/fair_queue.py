"""FairQueue: in which order waiting requests get in.

Decides by start-time fair queueing. Each priority is a level, and the level whose oldest request has the least place
in line goes first (`TurnRule`): lower priority values, among requests of about one time; but no level is passed for
ever, for places do not change while newcomers' places grow. Within one level every key has a line of its own, first
come first served, and the lines take turns by what they cost: a line's head carries a start tag; the smallest tag goes
first, the older head on a tie; what goes adds its price to its line's tag. The price is the peak of KV blocks, so a key
pays for what its requests take from the others. A key that comes back is set to the tag that went last: it neither
saves up turns while it is away, nor is it asked to wait for what it had when nobody else waited.

So within a level nobody starves: while a request waits at the head of its line, any other line gets at most one
turn more than the price of that head and its own newest request allow, however many requests it has.

    line A   [9][9][9][9][9]...      tags 0, 9, 18, ...: what A has sent is charged as it goes, not as it comes,
    line B   [4]                     tag 0: goes second   so that what A withdraws costs A nothing

Costs: `add`, `first`, `pop` and `remove` O(log n + levels) amortised (entries of heads that have gone stay in a heap
until they come up or are the majority); `in_order` O(n log n). State is bounded by what waits and by the keys that were
served since the priority's queue was empty.

Does not know clocks, limits, or what a ticket's price will turn out to be.
"""

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegate.errors import InternalError
from tidegate.inference.turn_rule import BY_PRIORITY, TurnRule
from tidegate.lifecycle.ticket import Ticket

_Entry = tuple[int, int, str]
"""Start tag of a line's head, when it came, the line's key."""


@dataclass(slots=True)
class _Line:
    """One key's waiting requests. `entry` stands in the heap; what stands there beside it is void."""

    tag: int
    tickets: OrderedDict[str, tuple[int, Ticket]] = field(default_factory=OrderedDict)
    entry: _Entry | None = None

    @property
    def head(self) -> tuple[int, Ticket]:
        return next(iter(self.tickets.values()))


class _Level:
    """All lines of one priority. `ages`: places in line of its tickets, in the order in which they came."""

    def __init__(self) -> None:
        self.lines: dict[str, _Line] = {}
        self.ages: OrderedDict[str, float] = OrderedDict()
        self._heads: list[_Entry] = []
        self._served: dict[str, int] = {}
        """Keys without a line whose last request is not paid off yet: the tag that they come back with."""
        self._payoffs: list[tuple[int, str]] = []
        self._virtual = 0

    @property
    def place(self) -> float:
        """Where its oldest ticket stands; there is one."""
        return next(iter(self.ages.values()))

    def add(self, number: int, ticket: Ticket, place: float) -> None:
        self.ages[ticket.ticket_id] = place
        line = self.lines.get(ticket.key_id)
        if line is None:
            line = _Line(max(self._virtual, self._served.pop(ticket.key_id, 0)))
            self.lines[ticket.key_id] = line
        line.tickets[ticket.ticket_id] = (number, ticket)
        if len(line.tickets) == 1:
            self._announce(ticket.key_id, line)

    def first(self) -> Ticket:
        while True:
            entry = self._heads[0]
            line = self.lines.get(entry[2])
            if line is not None and line.entry is entry:
                return line.head[1]
            heapq.heappop(self._heads)

    def take(self, ticket: Ticket) -> None:
        """Takes out the first ticket, and charges its line for it."""
        line = self.lines[ticket.key_id]
        self._virtual = max(self._virtual, line.tag)
        line.tag += max(1, ticket.num_blocks)
        self._take_out(ticket, line)
        while self._payoffs and self._payoffs[0][0] <= self._virtual:
            tag, key = heapq.heappop(self._payoffs)
            if self._served.get(key) == tag:
                del self._served[key]

    def remove(self, ticket: Ticket) -> None:
        """Takes out any ticket; its line pays nothing."""
        self._take_out(ticket, self.lines[ticket.key_id])
        if len(self._heads) > 2 * len(self.lines) + 16:
            self._heads = [line.entry for line in self.lines.values() if line.entry is not None]
            heapq.heapify(self._heads)

    def in_order(self) -> Iterator[Ticket]:
        lines = {key: iter(list(line.tickets.values())) for key, line in self.lines.items()}
        heads: list[tuple[int, int, str, Ticket]] = []
        for key, line in self.lines.items():
            number, ticket = next(lines[key])
            heads.append((line.tag, number, key, ticket))
        heapq.heapify(heads)
        while heads:
            tag, _, key, ticket = heads[0]
            yield ticket
            following = next(lines[key], None)
            if following is None:
                heapq.heappop(heads)
            else:
                number, behind = following
                heapq.heapreplace(heads, (tag + max(1, ticket.num_blocks), number, key, behind))

    def _take_out(self, ticket: Ticket, line: _Line) -> None:
        was_head = line.head[1] is ticket
        del self.ages[ticket.ticket_id]
        del line.tickets[ticket.ticket_id]
        if line.tickets:
            if was_head:
                self._announce(ticket.key_id, line)
            return
        del self.lines[ticket.key_id]
        if line.tag > self._virtual:
            self._served[ticket.key_id] = line.tag
            heapq.heappush(self._payoffs, (line.tag, ticket.key_id))

    def _announce(self, key: str, line: _Line) -> None:
        line.entry = (line.tag, line.head[0], key)
        heapq.heappush(self._heads, line.entry)


class FairQueue:
    """Waiting tickets. Empty levels are forgotten."""

    def __init__(self, turns: TurnRule = BY_PRIORITY) -> None:
        self._turns = turns
        self._levels: dict[int, _Level] = {}
        self._tickets: dict[str, Ticket] = {}
        self._num_added = 0

    def __len__(self) -> int:
        return len(self._tickets)

    def __contains__(self, ticket_id: str) -> bool:
        return ticket_id in self._tickets

    def add(self, ticket: Ticket) -> None:
        """Takes a ticket. Raises InternalError when one of its id waits already."""
        if ticket.ticket_id in self._tickets:
            raise InternalError(f"ticket {ticket.ticket_id} waits twice")
        self._tickets[ticket.ticket_id] = ticket
        level = self._levels.setdefault(self._turns.level(ticket.priority), _Level())
        self._num_added += 1
        level.add(self._num_added, ticket, self._turns.place(ticket.received_at, ticket.priority))

    def first(self) -> Ticket | None:
        """Returns who goes next, and leaves it there."""
        if not self._levels:
            return None
        return min(self._levels.items(), key=lambda item: (item[1].place, item[0]))[1].first()

    def pop(self) -> Ticket:
        """Takes out who goes next. Raises InternalError when nobody waits."""
        ticket = self.first()
        if ticket is None:
            raise InternalError("nobody waits")
        del self._tickets[ticket.ticket_id]
        self._level_of(ticket).take(ticket)
        self._forget_empty(ticket)
        return ticket

    def remove(self, ticket_id: str) -> Ticket:
        """Takes out any ticket. Raises KeyError when none of that id waits."""
        ticket = self._tickets.pop(ticket_id)
        self._level_of(ticket).remove(ticket)
        self._forget_empty(ticket)
        return ticket

    def in_order(self) -> Iterator[Ticket]:
        """Yields all as `pop` would give them, if nobody came or left. Nothing may change meanwhile."""
        turns = {priority: level.in_order() for priority, level in self._levels.items()}
        left = {priority: level.ages.copy() for priority, level in self._levels.items()}
        places = [(level.place, priority) for priority, level in self._levels.items()]
        heapq.heapify(places)
        while places:
            priority = places[0][1]
            ticket = next(turns[priority])
            yield ticket
            ages = left[priority]
            del ages[ticket.ticket_id]
            if ages:
                heapq.heapreplace(places, (next(iter(ages.values())), priority))
            else:
                heapq.heappop(places)

    def _level_of(self, ticket: Ticket) -> _Level:
        return self._levels[self._turns.level(ticket.priority)]

    def _forget_empty(self, ticket: Ticket) -> None:
        if not self._level_of(ticket).lines:
            del self._levels[self._turns.level(ticket.priority)]
