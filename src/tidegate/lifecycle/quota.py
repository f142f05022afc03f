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

from collections import OrderedDict
from dataclasses import dataclass

from tidegate.errors import RateFacts
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.quota_account import QuotaAccount

MAX_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one request took from its key's quotas, and in which window."""

    key_id: str
    num_tokens: int
    window: int


class KeyQuotas:
    """The accounts of all keys. A key's present quotas come with each call: they may change at any time."""

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._accounts: OrderedDict[str, QuotaAccount] = OrderedDict()

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
        account.roll(quotas, now)
        refusal = account.slot_refusal(quotas, account.num_slots, now)
        if refusal is not None:
            raise refusal
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
        refusal = account.refusal(quotas, now)
        if refusal is not None:
            raise refusal

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
        account.note_least(quotas)
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
        return account.facts(quotas, now)

    def _give_back(self, reservation: Reservation, quotas: Quotas, num_tokens: int, now: float) -> QuotaAccount | None:
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

    def _account(self, key_id: str) -> QuotaAccount:
        account = self._accounts.get(key_id)
        if account is not None:
            self._accounts.move_to_end(key_id)
            return account
        if len(self._accounts) >= self._max_keys:
            self._drop_oldest()
        account = self._accounts[key_id] = QuotaAccount()
        return account

    def _drop_oldest(self) -> None:
        """Forgets the account unused for longest. Those of live requests stay: their number is bounded elsewhere."""
        for key_id, account in self._accounts.items():
            if not account.num_slots and not account.num_reservations:
                del self._accounts[key_id]
                return
