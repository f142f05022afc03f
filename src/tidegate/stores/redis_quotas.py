"""RedisQuotas: the quotas of keys over several servers, in one Redis.

A slot is a lease that this process renews while its request runs: when the process dies, its slots come back within
`LEASE_S`. Where Redis has lost its data, renewals put slots back, and rates begin anew. No command is sent twice, so
nothing is counted twice; a Redis that does not answer is left alone for a second, and meanwhile the caller is told so
at once.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

from tidegate.errors import RateLimited
from tidegate.lasting_task import end_task, start_lasting
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.quota_account import QuotaAccount
from tidegate.lifecycle.quota_port import (
    QuotaBroken,
    QuotaStatistics,
    QuotaUnavailable,
    SharedReservation,
    SharedSlot,
)
from tidegate.lifecycle.store_patience import RETRY_S, StorePatience
from tidegate.stores import quota_scripts
from tidegate.stores.redis_client import RedisUnusable, connect_redis

LEASE_S = 8.0
"""How long the slots of a vanished process stay taken."""
RENEWALS_PER_LEASE = 4
CLOSE_S = 1.0
_RENEWED_AT_ONCE = 200
_OWNER_BYTES = 12
_SCRIPTS = {
    "reserve": quota_scripts.RESERVE,
    "settle": quota_scripts.SETTLE,
    "claim": quota_scripts.CLAIM_SLOT,
    "release": quota_scripts.RELEASE_SLOT,
    "renew": quota_scripts.RENEW_SLOTS,
}

_log = logging.getLogger(__name__)


class RedisQuotas:
    """Implements `QuotaStore`. `entropy` returns so many unpredictable bytes. Raises QuotaBroken for a URL that is
    none, and where the package `redis` is not installed. `timeout_s` bounds every question."""

    def __init__(
        self,
        url: str,
        entropy: Callable[[int], bytes],
        *,
        timeout_s: float,
        lease_s: float = LEASE_S,
        retry_s: float = RETRY_S,
    ) -> None:
        try:
            self._client = connect_redis(url, setting="quotas.redis_url", timeout_s=timeout_s, retries=False)
        except RedisUnusable as error:
            raise QuotaBroken(str(error)) from None
        self._timeout_s = timeout_s
        self._lease_s = lease_s
        self._owner = entropy(_OWNER_BYTES).hex()
        self._scripts = {name: self._client.register_script(text) for name, text in _SCRIPTS.items()}
        self._patience = StorePatience(retry_s)
        self._held: dict[str, SharedSlot] = {}
        self._num_named = 0
        self._num_answered = self._num_unanswered = 0
        self._renewal: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to renew leases, on the running event loop."""
        self._renewal = start_lasting(self._keep_renewing(), "quota leases")

    async def claim_slot(self, key_id: str, quotas: Quotas) -> SharedSlot:
        """See `QuotaStore.claim_slot`. A claim that is cancelled was not renewed: it lapses."""
        self._num_named += 1
        slot = SharedSlot(key_id, f"{self._owner}:{self._num_named}")
        limit = quotas.concurrency
        if limit is None:
            return slot
        max_tokens = quotas.tokens_per_minute
        head, *rest = await self._run("claim", (key_id, slot.name, limit, self._lease_ms, _or_blank(max_tokens)))
        if head <= 0:
            account, now = _account(rest)
            refusal = account.slot_refusal(quotas, -head, now)
            if refusal is not None:
                raise refusal
            raise QuotaUnavailable(f"Redis: {-head} slots of {limit} are a refusal")
        self._held[slot.name] = slot
        return slot

    async def release_slot(self, slot: SharedSlot) -> None:
        """See `QuotaStore.release_slot`."""
        if self._held.pop(slot.name, None) is not None:
            with contextlib.suppress(QuotaUnavailable):
                await self._run("release", (slot.key_id, slot.name))

    async def reserve(self, key_id: str, quotas: Quotas, num_tokens: int) -> SharedReservation:
        """See `QuotaStore.reserve`."""
        limits = (_or_blank(quotas.requests_per_minute), _or_blank(quotas.tokens_per_minute))
        is_taken, *rest = await self._run("reserve", (key_id, num_tokens, *limits))
        account, now = _account(rest)
        if not is_taken:
            raise _refusal(account, quotas, now)
        return SharedReservation(key_id, quotas, num_tokens, account.window, account.facts(quotas, now))

    async def settle(self, reservation: SharedReservation, num_used: int | None) -> None:
        """See `QuotaStore.settle`."""
        unused = reservation.num_tokens if num_used is None else max(0, reservation.num_tokens - num_used)
        if num_used is not None and (not unused or reservation.quotas.tokens_per_minute is None):
            return  # nothing that counts
        is_void = int(num_used is None)
        max_tokens = _or_blank(reservation.quotas.tokens_per_minute)
        with contextlib.suppress(QuotaUnavailable):
            await self._run("settle", (reservation.key_id, reservation.window, unused, is_void, max_tokens))

    def statistics(self) -> QuotaStatistics:
        """See `QuotaStore.statistics`."""
        return QuotaStatistics(len(self._held), self._num_answered, self._num_unanswered)

    async def aclose(self) -> None:
        """Ends the renewals, gives slots back, hangs up. Idempotent."""
        await end_task(self._renewal)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                for slot in tuple(self._held.values()):
                    await self.release_slot(slot)
        self._held.clear()
        await self._client.aclose()
        await self._client.connection_pool.disconnect()

    @property
    def _lease_ms(self) -> int:
        return round(self._lease_s * 1000)

    async def _run(self, name: str, arguments: Sequence[Any]) -> list[int]:
        """Returns a script's answer. Raises QuotaUnavailable, at once while Redis is known to be away."""
        import redis.exceptions

        now = asyncio.get_running_loop().time
        if not self._patience.may_ask(now()):
            self._num_unanswered += 1
            raise QuotaUnavailable("Redis did not answer a moment ago")
        try:
            async with asyncio.timeout(self._timeout_s):
                answer: list[int] = await self._scripts[name](keys=[quota_scripts.PREFIX], args=arguments)
        except (redis.exceptions.RedisError, OSError, TimeoutError) as error:
            await self._note_failure(error, now())
            raise QuotaUnavailable(f"Redis: {str(error) or type(error).__name__}") from error
        self._num_answered += 1
        if self._patience.note_answer():
            _log.warning("the store of quotas answers again")
        return answer

    async def _note_failure(self, error: Exception, now: float) -> None:
        """Idle connections are of no use any more; each would cost a request its answer."""
        self._num_unanswered += 1
        if self._patience.note_failure(now):
            _log.error("the store of quotas does not answer: %s", str(error) or type(error).__name__)
            with contextlib.suppress(Exception):
                await self._client.connection_pool.disconnect(inuse_connections=False)

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / RENEWALS_PER_LEASE)
            held = tuple(self._held.values())
            for start in range(0, len(held), _RENEWED_AT_ONCE):
                arguments: list[Any] = [self._lease_ms]
                for slot in held[start : start + _RENEWED_AT_ONCE]:
                    if slot.name in self._held:
                        arguments += (slot.key_id, slot.name)
                with contextlib.suppress(QuotaUnavailable):
                    await self._run("renew", arguments)


def _account(numbers: Sequence[int]) -> tuple[QuotaAccount, float]:
    """Returns what a script says of a key, and the store's time in seconds."""
    now, began, window, num_requests, num_tokens, least_requests, least_tokens = numbers
    account = QuotaAccount(
        began_at=None if began < 0 else began / 1000,
        window=window,
        num_requests=num_requests,
        num_tokens=num_tokens,
        least_requests=None if least_requests < 0 else least_requests,
        least_tokens=None if least_tokens < 0 else least_tokens,
    )
    return account, now / 1000


def _refusal(account: QuotaAccount, quotas: Quotas, now: float) -> RateLimited | QuotaUnavailable:
    return account.refusal(quotas, now) or QuotaUnavailable("Redis: a refusal with quota left")


def _or_blank(limit: int | None) -> int | str:
    return "" if limit is None else limit
