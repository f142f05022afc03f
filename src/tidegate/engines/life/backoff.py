"""Backoff: how long to wait before the next attempt, doubled with each one in a row, up to a cap.

Decides seconds only. Does not know: clocks, what is attempted, when a row is over.
"""

RETRY_MARGIN_S = 1.0
"""How much later than the next attempt a refused caller is asked to come again: an attempt takes its time."""
_MAX_DOUBLINGS = 60
"""2.0 ** 60 is the last power that matters; beyond it the float would overflow some day."""


class Backoff:
    """`first_wait_s` counts up to `max_wait_s` only."""

    def __init__(self, first_wait_s: float, max_wait_s: float) -> None:
        self._first_wait_s = first_wait_s
        self._max_wait_s = max_wait_s
        self._num_in_row = 0

    @property
    def num_in_row(self) -> int:
        """Waits since the row began."""
        return self._num_in_row

    def next_wait_s(self) -> float:
        """Returns the wait before the next attempt, and counts it."""
        wait_s = self._first_wait_s * 2.0 ** min(self._num_in_row, _MAX_DOUBLINGS)
        self._num_in_row += 1
        return min(self._max_wait_s, wait_s)

    def reset(self) -> None:
        """Begins a new row: an attempt went well."""
        self._num_in_row = 0
