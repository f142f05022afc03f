"""CommandOrder: batches of commands of one session, each carried out once and in order, however they arrive.

Ray may deliver calls out of order, and a server sends again what was not acknowledged in time. Decides which batches
are due. Does not know: what is in them, time, sessions.
"""

from typing import Generic, TypeVar

MAX_EARLY = 4096
"""Batches that may wait for one before them. What comes beyond is dropped: its server sends it again."""

Batch = TypeVar("Batch")


class CommandOrder(Generic[Batch]):
    """Numbers count from 1."""

    def __init__(self) -> None:
        self._last = 0
        self._early: dict[int, Batch] = {}

    @property
    def last(self) -> int:
        """The last number that was handed out: everything up to it has been carried out."""
        return self._last

    @property
    def num_early(self) -> int:
        """Batches that wait for one before them."""
        return len(self._early)

    def take(self, number: int, batch: Batch) -> list[Batch]:
        """Returns what is due now, in order; nothing for a batch that came before, or waits."""
        if number <= self._last or number in self._early:
            return []
        if number != self._last + 1 and len(self._early) >= MAX_EARLY:
            return []
        self._early[number] = batch
        due: list[Batch] = []
        while self._last + 1 in self._early:
            self._last += 1
            due.append(self._early.pop(self._last))
        return due
