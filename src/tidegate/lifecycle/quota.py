"""KeyQuotas: what each key may still ask for: requests at once, requests a minute, tokens a minute.

Decides by fixed windows of a minute, one for each key, which begin with the key's first request after the last one
ended: a promise that "remaining" never rises inside a window rules out buckets that refill all the time, and a window
says exactly when to come back. Both rates of a key share its window.

- A request is counted when it gets a place, one request and all tokens that it could use; a place that the server
  itself refuses or takes back counts for nothing. At its end what it did not use is given back.
- A key with anything left may spend more than that once: its last request of a window may overdraw. The debt is carried
  into the next windows, so the average holds, a request larger than a whole quota is not refused for ever, and nothing
  is refused before "remaining" was 0.
- What callers are told is the least that was left in this window, so that it never rises when tokens are given back;
  more may be possible, and then is allowed.
- "Reset" counts to the end of the window in which something is left again, at most `MAX_RETRY_AFTER_S`. `Retry-After`
  is the same, rounded up.

Does not know keys that have no quotas, nor what a request costs the engine. State is one record for each key seen, at
most `MAX_KEYS`; the one unused for longest goes first, and with it what it has used. Known weakness: a window allows a
burst at its end and another one right after it.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass

from tidegate.errors import LimitFact, RateFacts, RateLimited
from tidegate.lifecycle.principal import Quotas

WINDOW_S = 60.0
MAX_RETRY_AFTER_S = 120
RETRY_AFTER_SLOT_S = 1
"""Nobody knows when one of the key's requests ends."""
MAX_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one request took from its key's quotas, and in which window."""

    key_id: str
    num_tokens: int
    window: int


@dataclass(slots=True)
class _Account:
    """One key. `num_tokens` may exceed the quota; `num_carried` of it are the debt of earlier windows."""

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

    def reset_s(self, num_windows: int, now: float) -> float:
        if self.began_at is None:
            return 0.0
        return min(self.began_at + num_windows * WINDOW_S - now, float(MAX_RETRY_AFTER_S))


class KeyQuotas:
    """The accounts of all keys. A key's present quotas come with each call: they may change at any time."""

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._accounts: OrderedDict[str, _Account] = OrderedDict()

    @property
    def num_keys(self) -> int:
        return len(self._accounts)

    @property
    def num_slots(self) -> int:
        """Slots that are held, over all keys."""
        return sum(account.num_slots for account in self._accounts.values())

    @property
    def num_reservations(self) -> int:
        """Reservations that are neither settled nor cancelled, over all keys."""
        return sum(account.num_reservations for account in self._accounts.values())

    def claim_slot(self, key_id: str, quotas: Quotas, now: float) -> None:
        """Counts one more request of the key. Raises RateLimited (`concurrency`); nothing is held then."""
        account = self._account(key_id)
        if quotas.concurrency is not None and account.num_slots >= quotas.concurrency:
            raise RateLimited(
                "This key has as many requests under way as it may.",
                retry_after_s=RETRY_AFTER_SLOT_S,
                limit=LimitFact("concurrency", quotas.concurrency, account.num_slots + 1, "key"),
                rate=self.facts(key_id, quotas, now),
            )
        account.num_slots += 1

    def release_slot(self, key_id: str) -> None:
        """Gives one slot back."""
        self._accounts[key_id].num_slots -= 1

    def check(self, key_id: str, quotas: Quotas, now: float) -> None:
        """Raises RateLimited when nothing is left of a rate; changes nothing."""
        if not quotas.has_rate:
            return
        account = self._account(key_id)
        account.roll(quotas, now)
        used = {"requests_per_minute": account.num_requests, "tokens_per_minute": account.num_tokens}
        limits = {"requests_per_minute": quotas.requests_per_minute, "tokens_per_minute": quotas.tokens_per_minute}
        for name, limit in limits.items():
            if limit is not None and used[name] >= limit:
                facts = self._facts(account, quotas, now)
                reset_s = facts.reset_requests_s if name == "requests_per_minute" else facts.reset_tokens_s
                raise RateLimited(
                    f"This key's quota is used up: {name.replace('_', ' ')}.",
                    retry_after_s=min(max(1, math.ceil(reset_s or 0.0)), MAX_RETRY_AFTER_S),
                    limit=LimitFact(name, limit, used[name] + 1, "key"),
                    rate=facts,
                )

    def reserve(self, key_id: str, quotas: Quotas, num_tokens: int, now: float) -> Reservation | None:
        """Counts one request and its tokens; call `check` before. Returns None for a key without rates."""
        if not quotas.has_rate:
            return None
        account = self._account(key_id)
        account.roll(quotas, now)
        if account.began_at is None:
            account.began_at = now
        account.num_requests += 1
        account.num_tokens += num_tokens
        account.num_reservations += 1
        self._note_least(account, quotas)
        return Reservation(key_id, num_tokens, account.window)

    def settle(self, reservation: Reservation, quotas: Quotas, num_used: int, now: float) -> None:
        """The request has ended: gives back the tokens that it did not use. Call this or `cancel` once."""
        self._give_back(reservation, quotas, max(0, reservation.num_tokens - num_used), now)

    def cancel(self, reservation: Reservation, quotas: Quotas, now: float) -> None:
        """The server took the request's place back: it counts for nothing."""
        account = self._give_back(reservation, quotas, reservation.num_tokens, now)
        if account is not None and account.window == reservation.window:
            account.num_requests -= 1

    def facts(self, key_id: str, quotas: Quotas, now: float) -> RateFacts | None:
        """Returns what callers are told; None for a key without rates."""
        if not quotas.has_rate:
            return None
        account = self._account(key_id)
        account.roll(quotas, now)
        return self._facts(account, quotas, now)

    def _facts(self, account: _Account, quotas: Quotas, now: float) -> RateFacts:
        self._note_least(account, quotas)
        requests, tokens = quotas.requests_per_minute, quotas.tokens_per_minute
        num_windows = 1 if tokens is None else max(1, account.num_tokens // tokens)
        return RateFacts(
            limit_requests=requests,
            remaining_requests=account.least_requests,
            reset_requests_s=None if requests is None else account.reset_s(1, now),
            limit_tokens=tokens,
            remaining_tokens=account.least_tokens,
            reset_tokens_s=None if tokens is None else account.reset_s(num_windows, now),
        )

    @staticmethod
    def _note_least(account: _Account, quotas: Quotas) -> None:
        account.least_requests = _least(account.least_requests, quotas.requests_per_minute, account.num_requests)
        account.least_tokens = _least(account.least_tokens, quotas.tokens_per_minute, account.num_tokens)

    def _give_back(self, reservation: Reservation, quotas: Quotas, num_tokens: int, now: float) -> _Account | None:
        account = self._accounts.get(reservation.key_id)
        if account is None:
            return None
        account.num_reservations -= 1
        account.roll(quotas, now)
        if account.window == reservation.window:
            account.num_tokens -= num_tokens
        else:
            paid_off = min(num_tokens, account.num_carried)
            account.num_carried -= paid_off
            account.num_tokens -= paid_off
        return account

    def _account(self, key_id: str) -> _Account:
        account = self._accounts.get(key_id)
        if account is not None:
            self._accounts.move_to_end(key_id)
            return account
        if len(self._accounts) >= self._max_keys:
            self._drop_oldest()
        account = self._accounts[key_id] = _Account()
        return account

    def _drop_oldest(self) -> None:
        """Forgets the account unused for longest. Those of live requests stay: their number is bounded elsewhere."""
        for key_id, account in self._accounts.items():
            if not account.num_slots and not account.num_reservations:
                del self._accounts[key_id]
                return


def _least(least: int | None, limit: int | None, num_used: int) -> int | None:
    if limit is None:
        return None
    left = max(0, limit - num_used)
    return left if least is None else min(least, left, limit)
