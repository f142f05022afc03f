"""`QuotaStore`: the port to whatever counts keys' quotas for several servers at once.

The rules are those of `quota.py` and `quota_account.py`, and `testing/check_quotas.py` holds stores to them. A store
answers soon or raises QuotaUnavailable: it never leaves a request waiting.
"""

from dataclasses import dataclass
from typing import Protocol

from tidegate.errors import RateFacts
from tidegate.lifecycle.principal import Quotas


class QuotaUnavailable(Exception):
    """The store does not answer. The text is for the log, not for callers."""


class QuotaBroken(Exception):
    """The store cannot be opened. The message says what to do; it is for the operator."""


@dataclass(frozen=True, slots=True)
class SharedSlot:
    """One of the requests that a key may have at once. `name` is never used again."""

    key_id: str
    name: str


@dataclass(frozen=True, slots=True)
class SharedReservation:
    """What one request took from its key's rates, in which window, and what its caller is told is left."""

    key_id: str
    quotas: Quotas
    num_tokens: int
    window: int
    facts: RateFacts


@dataclass(frozen=True, slots=True)
class QuotaStatistics:
    """`num_slots` are held by this process. The rest are totals: questions that were answered, and that were not."""

    num_slots: int = 0
    num_answered: int = 0
    num_unanswered: int = 0


class QuotaStore(Protocol):
    """All methods belong to one event loop and never block it."""

    async def claim_slot(self, key_id: str, quotas: Quotas) -> SharedSlot:
        """Counts one more request of the key. Raises RateLimited (`concurrency`), QuotaUnavailable; nothing is held
        then. A slot of a process that died comes back by itself."""
        ...

    async def release_slot(self, slot: SharedSlot) -> None:
        """Gives one slot back. Never raises: what the store cannot be told lapses."""
        ...

    async def reserve(self, key_id: str, quotas: Quotas, num_tokens: int) -> SharedReservation:
        """Counts one request and its tokens, for a key with rates. Raises RateLimited where nothing is left of one,
        and QuotaUnavailable."""
        ...

    async def settle(self, reservation: SharedReservation, num_used: int | None) -> None:
        """The request has ended: gives back the tokens that it did not use; None for one that counts for nothing.
        Never raises: where the store cannot be told, the tokens stay counted until their window ends."""
        ...

    def statistics(self) -> QuotaStatistics:
        """Returns a snapshot without asking the store."""
        ...
