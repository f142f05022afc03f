"""QuotaAccount: what one key has used of its rates in its window, and what callers are told of it.

The rules are those of `quota.py`. Whoever keeps accounts (this process, or a store that several share) tells callers
the same with the same numbers. Instants are of one clock, in seconds; which one is the keeper's affair.
"""

import math
from dataclasses import dataclass

from tidegate.errors import LimitFact, RateFacts, RateLimited
from tidegate.lifecycle.principal import Quotas

WINDOW_S = 60.0
MAX_RETRY_AFTER_S = 120
RETRY_AFTER_SLOT_S = 1
"""Nobody knows when one of the key's requests ends."""


@dataclass(slots=True)
class QuotaAccount:
    """One key. `num_tokens` may exceed the quota; `num_carried` of it are the debt of earlier windows.

    `began_at` is None while no window runs. `least_requests` and `least_tokens`: the least that was left in it.
    """

    began_at: float | None = None
    window: int = 0
    num_requests: int = 0
    num_tokens: int = 0
    num_carried: int = 0
    least_requests: int | None = None
    least_tokens: int | None = None
    num_slots: int = 0
    num_reservations: int = 0

    def roll(self, quotas: Quotas, now: float) -> None:
        """Ends the window when its time is over. A debt begins the next one at once."""
        if self.began_at is None or now < self.began_at + WINDOW_S:
            return
        num_windows = int((now - self.began_at) // WINDOW_S)
        paid = (quotas.tokens_per_minute or self.num_tokens) * num_windows
        self.num_tokens = self.num_carried = max(0, self.num_tokens - paid)
        self.began_at = self.began_at + num_windows * WINDOW_S if self.num_tokens else None
        self.window += 1
        self.num_requests = 0
        self.least_requests = self.least_tokens = None

    def note_least(self, quotas: Quotas) -> None:
        """Lowers what callers are told to what is left now."""
        self.least_requests = _least(self.least_requests, quotas.requests_per_minute, self.num_requests)
        self.least_tokens = _least(self.least_tokens, quotas.tokens_per_minute, self.num_tokens)

    def facts(self, quotas: Quotas, now: float) -> RateFacts:
        """Returns what callers are told."""
        self.note_least(quotas)
        requests, tokens = quotas.requests_per_minute, quotas.tokens_per_minute
        num_windows = 1 if tokens is None else max(1, self.num_tokens // tokens)
        return RateFacts(
            limit_requests=requests,
            remaining_requests=self.least_requests,
            reset_requests_s=None if requests is None else self._reset_s(1, now),
            limit_tokens=tokens,
            remaining_tokens=self.least_tokens,
            reset_tokens_s=None if tokens is None else self._reset_s(num_windows, now),
        )

    def refusal(self, quotas: Quotas, now: float) -> RateLimited | None:
        """Returns why no further request is taken in this window; None while one is."""
        used = {"requests_per_minute": self.num_requests, "tokens_per_minute": self.num_tokens}
        limits = {"requests_per_minute": quotas.requests_per_minute, "tokens_per_minute": quotas.tokens_per_minute}
        for name, limit in limits.items():
            if limit is not None and used[name] >= limit:
                facts = self.facts(quotas, now)
                reset_s = facts.reset_requests_s if name == "requests_per_minute" else facts.reset_tokens_s
                return RateLimited(
                    f"This key's quota is used up: {name.replace('_', ' ')}.",
                    retry_after_s=min(max(1, math.ceil(reset_s or 0.0)), MAX_RETRY_AFTER_S),
                    limit=LimitFact(name, limit, used[name] + 1, "key"),
                    rate=facts,
                )
        return None

    def slot_refusal(self, quotas: Quotas, num_slots: int, now: float) -> RateLimited | None:
        """Returns why no further request may be under way; None while one may. `num_slots` are held."""
        if quotas.concurrency is None or num_slots < quotas.concurrency:
            return None
        return RateLimited(
            "This key has as many requests under way as it may.",
            retry_after_s=RETRY_AFTER_SLOT_S,
            limit=LimitFact("concurrency", quotas.concurrency, num_slots + 1, "key"),
            rate=self.facts(quotas, now) if quotas.has_rate else None,
        )

    def _reset_s(self, num_windows: int, now: float) -> float:
        if self.began_at is None:
            return 0.0
        return min(self.began_at + num_windows * WINDOW_S - now, float(MAX_RETRY_AFTER_S))


def _least(least: int | None, limit: int | None, num_used: int) -> int | None:
    if limit is None:
        return None
    left = max(0, limit - num_used)
    return left if least is None else min(least, left, limit)
