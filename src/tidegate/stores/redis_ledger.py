"""RedisLedger: the `Ledger` of several hosts, in one Redis.

A claim is a lease that this process renews while its request runs: when the process dies, the lease ends within
`LEASE_S`. Where Redis has lost a claim that nobody else has taken (it restarted without its data), the renewal puts
it back. Connections are made when they are needed: a Redis that comes back is used again without further ado.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

from tidegate.lasting_task import end_task, start_lasting
from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.lifecycle.ledger_port import (
    Claim,
    ClaimAnswer,
    Fresh,
    InFlight,
    LedgerBroken,
    LedgerFull,
    LedgerStatistics,
    LedgerUnavailable,
    Mismatch,
    Replay,
)
from tidegate.stores import redis_scripts
from tidegate.stores.redis_client import RedisUnusable, connect_redis

LEASE_S = 8.0
"""How long the claim of a vanished process blocks its key."""
RENEWALS_PER_LEASE = 4
ANSWER_TIMEOUT_S = 2.0
_RENEWED_AT_ONCE = 100
_GENERATION_BYTES = 16

_log = logging.getLogger(__name__)


class RedisLedger:
    """Implements `Ledger`. `entropy` returns so many unpredictable bytes. Raises LedgerBroken for a URL that is none,
    and where the package `redis` is not installed."""

    def __init__(
        self, url: str, limits: LedgerLimits, entropy: Callable[[int], bytes], *, lease_s: float = LEASE_S
    ) -> None:
        try:
            self._client = connect_redis(url, setting="idempotency.redis_url", timeout_s=ANSWER_TIMEOUT_S)
        except RedisUnusable as error:
            raise LedgerBroken(str(error)) from None
        self._limits = limits
        self._entropy = entropy
        self._lease_s = lease_s
        self._scripts = {
            name: self._client.register_script(text)
            for name, text in (
                ("claim", redis_scripts.CLAIM),
                ("record", redis_scripts.RECORD),
                ("release", redis_scripts.RELEASE),
                ("renew", redis_scripts.RENEW),
            )
        }
        self._held: dict[str, Claim] = {}
        self._statistics = LedgerStatistics()
        self._renewal: asyncio.Task[None] | None = None
        self._is_down = False

    def start(self) -> None:
        """Begins to renew leases, on the running event loop."""
        self._renewal = start_lasting(self._keep_renewing(), "ledger leases")

    async def claim(self, operation: bytes, fingerprint: bytes) -> ClaimAnswer:
        """See `Ledger.claim`."""
        claim = Claim(operation, fingerprint, self._entropy(_GENERATION_BYTES).hex())
        limits = self._limits
        answer = await self._run(
            "claim",
            (
                operation.hex(),
                fingerprint,
                claim.generation,
                self._lease_ms,
                limits.retention_s * 1000,
                limits.max_entries,
            ),
        )
        match answer[0]:
            case b"fresh":
                self._held[claim.generation] = claim
                return Fresh(claim)
            case b"in_flight":
                return InFlight()
            case b"mismatch":
                return Mismatch()
            case b"full":
                raise LedgerFull(answer[1])
            case _:
                return Replay(answer[4])

    async def record(self, claim: Claim, answer: bytes) -> bool:
        """See `Ledger.record`."""
        if self._held.pop(claim.generation, None) is None:
            return False
        limits = self._limits
        arguments = (claim.operation.hex(), claim.fingerprint, claim.generation, answer)
        done = await self._run("record", (*arguments, limits.retention_s * 1000, limits.max_bytes))
        return bool(done[0])

    async def release(self, claim: Claim) -> None:
        """See `Ledger.release`."""
        if self._held.pop(claim.generation, None) is not None:
            with contextlib.suppress(LedgerUnavailable):  # not renewed any more: it lapses
                await self._run("release", (claim.operation.hex(), claim.generation))

    def statistics(self) -> LedgerStatistics:
        """See `Ledger.statistics`."""
        return self._statistics

    async def aclose(self) -> None:
        """See `Ledger.aclose`."""
        await end_task(self._renewal)
        for claim in tuple(self._held.values()):
            await self.release(claim)
        await self._client.aclose()
        await self._client.connection_pool.disconnect()

    @property
    def _lease_ms(self) -> int:
        return round(self._lease_s * 1000)

    async def _run(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        import redis.exceptions

        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):  # a free connection, its greeting and the answer
                answer: list[Any] = await self._scripts[name](keys=[redis_scripts.PREFIX], args=arguments)
        except (redis.exceptions.RedisError, OSError, TimeoutError) as error:
            self._is_down = True
            raise LedgerUnavailable(f"Redis: {str(error) or type(error).__name__}") from error
        self._is_down = False
        num_evicted = self._statistics.num_evicted + answer[3]
        self._statistics = LedgerStatistics(answer[1], answer[2], num_evicted)
        return answer

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / RENEWALS_PER_LEASE)
            was_down = self._is_down
            try:
                await self._renew()
            except LedgerUnavailable as error:
                if not was_down:
                    _log.warning("the ledger of idempotency keys does not answer: %s", error)

    async def _renew(self) -> None:
        """Renews all leases; also says whether Redis answers when there are none."""
        held = tuple(self._held.values())
        for start in range(0, max(1, len(held)), _RENEWED_AT_ONCE):
            arguments: list[Any] = [self._lease_ms, self._limits.retention_s * 1000]
            for claim in held[start : start + _RENEWED_AT_ONCE]:
                arguments += (claim.operation.hex(), claim.fingerprint, claim.generation)
            lost, *_ = await self._run("renew", arguments)
            for generation in lost:
                self._held.pop(generation.decode(), None)
