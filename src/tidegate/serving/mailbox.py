"""Between the engine's callback and the writer: one slot of events for a whole reply.

What decides has run before events come here, so a slow reader delays nothing but itself. Events wait merged: while
the reader is behind, neighbours of one choice join, and the number of pieces stays bounded by the number of choices
plus a small constant. `num_bytes` estimates what waits, so that the driver can hold the engine.
"""

import asyncio

from tidegate.inference.event import ContentText, ReasoningText, StreamEvent, ToolCallArguments, merge_events

IndexedEvent = tuple[int, StreamEvent]

_COMPACT_AT = 32


class Mailbox:
    """One producer (the event loop's callbacks) and one consumer (the reply's task)."""

    def __init__(self) -> None:
        self._items: list[IndexedEvent] = []
        self._compact_at = _COMPACT_AT
        self._num_bytes = 0
        self._is_closed = False
        self._is_nudged = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def num_bytes(self) -> int:
        """Characters that wait, which is a lower bound of their bytes."""
        return self._num_bytes

    @property
    def is_drained(self) -> bool:
        """Whether everything there will ever be has been taken."""
        return self._is_closed and not self._items

    def put(self, index: int, events: list[StreamEvent]) -> None:
        """Adds events of choice `index`, in order. Ignored once closed."""
        if self._is_closed:
            return
        for event in events:
            self._items.append((index, event))
            self._num_bytes += _text_size(event)
        if len(self._items) > self._compact_at:
            self._items = _compact(self._items)
            self._compact_at = 2 * len(self._items) + _COMPACT_AT
        self._wake()

    def close(self) -> None:
        """Says that nothing more comes. What waits can still be taken."""
        self._is_closed = True
        self._wake()

    def nudge(self) -> None:
        """Lets a waiting `take` return with nothing."""
        self._is_nudged = True
        self._wake()

    async def take(self) -> list[IndexedEvent] | None:
        """Waits for events and takes all of them; an empty list after a nudge; None when closed and empty.

        Cancelling a `take` leaves everything in place.
        """
        while not self._items:
            if self._is_closed:
                return None
            if self._is_nudged:
                self._is_nudged = False
                return []
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._is_nudged = False
        items, self._items = self._items, []
        self._num_bytes = 0
        return items if len(items) == 1 else _compact(items)

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _text_size(event: StreamEvent) -> int:
    if isinstance(event, ContentText | ReasoningText):
        return len(event.text)
    return len(event.fragment) if isinstance(event, ToolCallArguments) else 0


def _compact(items: list[IndexedEvent]) -> list[IndexedEvent]:
    """Groups by choice, in order of first appearance, and merges what can be merged."""
    groups: dict[int, list[StreamEvent]] = {}
    for index, event in items:
        groups.setdefault(index, []).append(event)
    return [(index, event) for index, events in groups.items() for event in merge_events(events)]
