"""StorePatience: whether a store that did not answer is asked again.

Decides from its answers and the time. After a failure it is left alone for a while, so that a store that is away costs
one timeout and not one for each request; then it is asked again. Does not know the store, nor what the caller does
without it.
"""

RETRY_S = 1.0
"""How long a store that did not answer is left alone."""


class StorePatience:
    """`now` is an instant of the monotonic clock."""

    def __init__(self, retry_s: float = RETRY_S) -> None:
        self._retry_s = retry_s
        self._asks_at: float | None = None

    @property
    def is_away(self) -> bool:
        """Whether the last answer did not come."""
        return self._asks_at is not None

    def may_ask(self, now: float) -> bool:
        """Whether the store may be asked at this instant."""
        return self._asks_at is None or now >= self._asks_at

    def note_answer(self) -> bool:
        """The store answered; returns whether it had been away."""
        was_away, self._asks_at = self._asks_at is not None, None
        return was_away

    def note_failure(self, now: float) -> bool:
        """The store did not answer; returns whether that is news."""
        is_news, self._asks_at = self._asks_at is None, now + self._retry_s
        return is_news
