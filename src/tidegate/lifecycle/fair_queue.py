"""FairQueue: in which order waiting requests get in.

Decides by start-time fair queueing. Lower priority value first, always. Within one priority every key has a line of
its own, first come first served, and the lines take turns by what they cost: a line's head carries a start tag; the
smallest tag goes first, the older head on a tie; what goes adds its price to its line's tag. The price is the peak of
KV blocks, so a key pays for what its requests take from the others. A key that comes back is set to the tag that went
last: it neither saves up turns while it is away, nor is it asked to wait for what it had when nobody else waited.

So within a priority nobody starves: while a request waits at the head of its line, any other line gets at most one
turn more than the price of that head and its own newest request allow, however many requests it has.

    line A   [9][9][9][9][9]...      tags 0, 9, 18, ...: what A has sent is charged as it goes, not as it comes,
    line B   [4]                     tag 0: goes second   so that what A withdraws costs A nothing

Costs: `add`, `pop` and `remove` O(log n) amortised (entries of heads that have gone stay in a heap until they come up
or are the majority); `in_order` O(n log n). State is bounded by what waits and by the keys that were served since the
priority's queue was empty.

Does not know time, limits, or what a ticket's price will turn out to be. Known weakness: a strict priority may starve
those below it; keys bound which priorities a caller may ask for.
"""

import heapq
from bisect import insort
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegate.errors import InternalError
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
    """All lines of one priority."""

    def __init__(self) -> None:
        self.lines: dict[str, _Line] = {}
        self._heads: list[_Entry] = []
        self._served: dict[str, int] = {}
        """Keys without a line whose last request is not paid off yet: the tag that they come back with."""
        self._payoffs: list[tuple[int, str]] = []
        self._virtual = 0

    def add(self, number: int, ticket: Ticket) -> None:
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

    def __init__(self) -> None:
        self._levels: dict[int, _Level] = {}
        self._priorities: list[int] = []
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
        level = self._levels.get(ticket.priority)
        if level is None:
            level = self._levels[ticket.priority] = _Level()
            insort(self._priorities, ticket.priority)
        self._num_added += 1
        level.add(self._num_added, ticket)

    def first(self) -> Ticket | None:
        """Returns who goes next, and leaves it there."""
        return self._levels[self._priorities[0]].first() if self._priorities else None

    def pop(self) -> Ticket:
        """Takes out who goes next. Raises InternalError when nobody waits."""
        ticket = self.first()
        if ticket is None:
            raise InternalError("nobody waits")
        del self._tickets[ticket.ticket_id]
        level = self._levels[ticket.priority]
        level.take(ticket)
        self._forget(ticket.priority, level)
        return ticket

    def remove(self, ticket_id: str) -> Ticket:
        """Takes out any ticket. Raises KeyError when none of that id waits."""
        ticket = self._tickets.pop(ticket_id)
        level = self._levels[ticket.priority]
        level.remove(ticket)
        self._forget(ticket.priority, level)
        return ticket

    def in_order(self) -> Iterator[Ticket]:
        """Yields all as `pop` would give them, if nobody came or left. Nothing may change meanwhile."""
        for priority in self._priorities:
            yield from self._levels[priority].in_order()

    def _forget(self, priority: int, level: _Level) -> None:
        if not level.lines:
            del self._levels[priority]
            self._priorities.remove(priority)
