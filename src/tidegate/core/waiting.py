"""The queue of those that wait for their turn: sequences that want memory, prompts that are only read.


Decides their order: by place in line (`TurnRule`), then arrival, then choice; one whose time has not come does not
count. Does not know memory, and holds nobody whose reader is behind.

Adding and removing cost O(log n) amortised: a removed entry stays in its heap, void, until it comes up or until void
entries are the majority.
"""

import heapq
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from tidegate.core.sequence import Order


class Waiter(Protocol):
    """Who can wait. `key` is never used twice; until `not_before` it is left alone."""

    @property
    def key(self) -> int: ...

    @property
    def order(self) -> Order: ...

    @property
    def not_before(self) -> float: ...


W = TypeVar("W", bound=Waiter)


class WaitingQueue(Generic[W]):
    """Waiters by order, those whose time has not come by time."""

    def __init__(self) -> None:
        self._ready: list[tuple[Order, int, W]] = []
        self._early: list[tuple[float, int, W]] = []
        self._tickets: dict[int, int] = {}
        self._next_ticket = 0

    def __len__(self) -> int:
        return len(self._tickets)

    def __contains__(self, waiter: W) -> bool:
        return waiter.key in self._tickets

    def add(self, waiter: W) -> None:
        """Takes a sequence that is not in the queue."""
        ticket = self._next_ticket
        self._next_ticket += 1
        self._tickets[waiter.key] = ticket
        heapq.heappush(self._early, (waiter.not_before, ticket, waiter))

    def remove(self, waiter: W) -> None:
        """Raises KeyError when the sequence is not in the queue."""
        del self._tickets[waiter.key]
        if len(self._ready) + len(self._early) > 2 * len(self._tickets) + 16:
            self._ready = [entry for entry in self._ready if self._is_valid(entry)]
            self._early = [entry for entry in self._early if self._is_valid(entry)]
            heapq.heapify(self._ready)
            heapq.heapify(self._early)

    def first(
        self, now: float, *, skip: Callable[[W], bool] | None = None, max_skipped: int = 0
    ) -> tuple[W | None, int]:
        """Returns the first sequence whose time has come and that is not to be skipped, and how many were skipped.

        Gives up, with None, once more than `max_skipped` would be. The sequence stays in the queue.
        """
        self._ripen(now)
        aside: list[tuple[Order, int, W]] = []
        found: W | None = None
        while self._ready:
            entry = self._ready[0]
            if not self._is_valid(entry):
                heapq.heappop(self._ready)
            elif skip is None or not skip(entry[2]):
                found = entry[2]
                break
            elif len(aside) == max_skipped:
                break
            else:
                aside.append(heapq.heappop(self._ready))
        for entry in aside:
            heapq.heappush(self._ready, entry)
        return found, len(aside)

    def next_due_at(self, now: float) -> float | None:
        """Returns the earliest instant after `now` at which a sequence's time comes."""
        self._ripen(now)
        while self._early and not self._is_valid(self._early[0]):
            heapq.heappop(self._early)
        return self._early[0][0] if self._early else None

    def _ripen(self, now: float) -> None:
        while self._early and self._early[0][0] <= now:
            entry = heapq.heappop(self._early)
            if self._is_valid(entry):
                heapq.heappush(self._ready, (entry[2].order, entry[1], entry[2]))

    def _is_valid(self, entry: tuple[Order | float, int, W]) -> bool:
        return self._tickets.get(entry[2].key) == entry[1]
