"""LeaseBook: which servers are still there, by when each was last heard.

A server that is killed says nothing, and a detached actor is not told: who is silent longer than the lease has its
requests aborted. Decides who is. A pause of our own process is nobody's silence: when the book itself was not looked at
for too long, every lease begins anew. Does not know: Ray, requests, clocks (instants are given).
"""

PAUSE_PART = 0.5
"""A gap between two looks beyond this part of the lease is a pause of ours."""


class LeaseBook:
    """`lease_s`: how long a session may be silent. To be looked at several times within it."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._heard_at: dict[str, float] = {}
        self._looked_at: float | None = None

    def __len__(self) -> int:
        return len(self._heard_at)

    def renew(self, session: str, now: float) -> None:
        """The session was heard, or begins."""
        self._heard_at[session] = now

    def drop(self, session: str) -> None:
        """The session has ended. Idempotent."""
        self._heard_at.pop(session, None)

    def expired(self, now: float) -> list[str]:
        """Returns the sessions whose time is over, and forgets them."""
        looked_at, self._looked_at = self._looked_at, now
        if looked_at is not None and now - looked_at > self._lease_s * PAUSE_PART:
            self._heard_at = dict.fromkeys(self._heard_at, now)
            return []
        over = [session for session, at in self._heard_at.items() if now - at > self._lease_s]
        for session in over:
            del self._heard_at[session]
        return over
