"""Unacknowledged: batches of commands that the engine has not confirmed, and when each is sent again.

A call to an actor may be lost with its connection, and its answer is not waited for: the engine's events say how far it
has come. Decides what is due: few at a time, the oldest first, each after twice the wait of the last time, because an
actor that is only busy must not be buried. Does not know: bytes, Ray, clocks (instants are given).
"""

from dataclasses import dataclass
from itertools import islice

MAX_UNCONFIRMED_BYTES = 64 * 1024 * 1024
"""What may wait for an engine that does not confirm; above it the line counts as congested."""


MAX_RESENT = 16
"""Batches that are sent again at once: the oldest, without which no later one is carried out."""


@dataclass(slots=True)
class _Sent:
    data: bytes
    due_at: float
    wait_s: float


class Unacknowledged:
    """Holds batches in the order of their numbers. `resend_after_s`: how long a confirmation may take at first."""

    def __init__(self, resend_after_s: float) -> None:
        self._resend_after_s = resend_after_s
        self._sent: dict[int, _Sent] = {}
        self._num_bytes = 0

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def num_bytes(self) -> int:
        """Bytes of all batches that are not confirmed."""
        return self._num_bytes

    @property
    def is_congested(self) -> bool:
        return self._num_bytes > MAX_UNCONFIRMED_BYTES

    def add(self, number: int, data: bytes, now: float) -> None:
        """A batch leaves for the first time. Numbers only grow."""
        self._sent[number] = _Sent(data, now + self._resend_after_s, self._resend_after_s)
        self._num_bytes += len(data)

    def confirm(self, number: int) -> None:
        """Everything up to `number` has been carried out."""
        while self._sent and (first := next(iter(self._sent))) <= number:
            self._num_bytes -= len(self._sent.pop(first).data)

    def due(self, now: float) -> list[bytes]:
        """Returns what is to be sent again now, in order, and counts it as sent at `now`."""
        oldest = list(islice(self._sent.values(), MAX_RESENT))
        late = [sent for sent in oldest if sent.due_at <= now]
        for sent in late:
            sent.wait_s *= 2
            sent.due_at = now + sent.wait_s
        return [sent.data for sent in late]
