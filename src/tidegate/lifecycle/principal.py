"""Principal: who calls, and what that caller may do. Does not know keys, digests, or HTTP."""

from dataclasses import dataclass, field

LOWEST_PRIORITY, HIGHEST_PRIORITY = 100, -100
"""Lower runs first."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """A key's own limits; None where it has none. All are at least 1."""

    concurrency: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    @property
    def has_rate(self) -> bool:
        """Whether `X-RateLimit-*` headers say anything about this key."""
        return self.requests_per_minute is not None or self.tokens_per_minute is not None


@dataclass(frozen=True, slots=True)
class Principal:
    """One caller. `key_id` is unique and public (never the key, nor its digest); `name` is for people and logs.

    `models` and `routes` are None where everything is allowed; routes are patterns as the router knows them.
    `deadline_max_ms` bounds how long a request of this caller may take.
    """

    key_id: str
    name: str
    models: frozenset[str] | None = None
    routes: frozenset[str] | None = None
    priority_min: int = HIGHEST_PRIORITY
    priority_max: int = LOWEST_PRIORITY
    quotas: Quotas = field(default_factory=Quotas)
    deadline_max_ms: int | None = None

    @property
    def log_name(self) -> str | None:
        """The name for logs and metrics; None where no keys are configured."""
        return self.name if self.key_id else None

    def clamp_priority(self, priority: int) -> int:
        """Returns the nearest priority that this caller may ask for."""
        return min(max(priority, self.priority_min), self.priority_max)


ANONYMOUS = Principal("", "anonymous")
"""Who calls where no keys are configured."""
