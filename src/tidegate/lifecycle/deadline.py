"""Deadlines of one request: which instant is next, and which limit has passed.

Decides, from limits in milliseconds that several parties may set, the instants that count: of each kind the least one,
counted from receipt. Once the first token has come, the deadline for it no longer matters. Does not know: what the
request does, who asks, clocks (instants are given).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.errors import DeadlineExceeded, LimitFact

DEADLINE, FIRST_TOKEN_DEADLINE = "deadline_ms", "first_token_deadline_ms"
"""Names in `limit.name`."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Milliseconds from receipt, None for no limit, and whose limit it is: "request", "key" or "server"."""

    limit_ms: int | None
    scope: str


@dataclass(frozen=True, slots=True)
class Deadline:
    """One limit as an instant of the monotonic clock."""

    name: str
    limit_ms: int
    scope: str
    at: float

    def error(self, now: float) -> DeadlineExceeded:
        """Returns what the caller is told when this deadline has passed, at the instant `now`."""
        elapsed_ms = max(self.limit_ms, round((now - self.at) * 1000) + self.limit_ms)
        what = "The first token" if self.name == FIRST_TOKEN_DEADLINE else "The answer"
        return DeadlineExceeded(
            f"{what} did not come within {self.limit_ms} ms.",
            limit=LimitFact(self.name, self.limit_ms, elapsed_ms, self.scope),
        )


@dataclass(frozen=True, slots=True)
class Deadlines:
    """What one request has to keep; None for no deadline."""

    whole: Deadline | None = None
    first_token: Deadline | None = None

    def next(self, *, has_first_token: bool) -> Deadline | None:
        """Returns the deadline that passes first of those that still matter."""
        first_token = None if has_first_token else self.first_token
        if self.whole is None or first_token is None:
            return first_token or self.whole
        return first_token if first_token.at < self.whole.at else self.whole


NO_DEADLINES = Deadlines()


def fix_deadlines(received_at: float, whole: Iterable[TimeLimit], first_token: Iterable[TimeLimit]) -> Deadlines:
    """Returns the least limit of each kind as an instant; of equal ones the first counts."""
    return Deadlines(
        _least(DEADLINE, received_at, whole),
        _least(FIRST_TOKEN_DEADLINE, received_at, first_token),
    )


def _least(name: str, received_at: float, limits: Iterable[TimeLimit]) -> Deadline | None:
    given = [(limit.limit_ms, limit.scope) for limit in limits if limit.limit_ms is not None]
    if not given:
        return None
    limit_ms, scope = min(given, key=lambda limit: limit[0])
    return Deadline(name, limit_ms, scope, received_at + limit_ms / 1000)
