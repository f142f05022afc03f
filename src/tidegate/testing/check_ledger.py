"""What every `Ledger` must do, as checks that a store's author runs against the store.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_ledger(check): asyncio.run(run_against_my_ledger(check))

A check raises AssertionError when the ledger breaks the port's rules (`lifecycle/ledger_port.py`).
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from tidegate.lifecycle.ledger import LedgerLimits
from tidegate.lifecycle.ledger_port import Claim, Fresh, InFlight, Ledger, LedgerFull, Mismatch, Replay


class LedgerUnderTest(Protocol):
    """A store that is empty at first, and server processes that share it."""

    async def open(self, limits: LedgerLimits) -> Ledger:
        """Returns the ledger of one more process. All of them get the same limits."""
        ...

    async def kill(self, ledger: Ledger) -> None:
        """Ends a process without a word, and waits until the store can know of it."""
        ...

    async def advance(self, duration_s: float) -> None:
        """Lets time pass for what is recorded."""
        ...


LIMITS = LedgerLimits(retention_s=100, max_entries=1000, max_bytes=1 << 24)
ANSWER = bytes(range(256)) * 16


def name(text: str) -> bytes:
    """Returns 32 bytes: an operation, or a fingerprint."""
    return hashlib.sha256(text.encode()).digest()


BODY, OTHER_BODY = name("body"), name("other body")


async def claim_fresh(ledger: Ledger, operation: str, fingerprint: bytes = BODY) -> Claim:
    """Claims an operation that must be free."""
    found = await ledger.claim(name(operation), fingerprint)
    assert isinstance(found, Fresh), f"{operation} is not free: {found}"
    assert (found.claim.operation, found.claim.fingerprint) == (name(operation), fingerprint)
    return found.claim


async def record(ledger: Ledger, operation: str, answer: bytes = ANSWER) -> Claim:
    """Carries out an operation."""
    claim = await claim_fresh(ledger, operation)
    assert await ledger.record(claim, answer)
    return claim


async def check_a_running_operation_is_in_flight_for_everyone(under_test: LedgerUnderTest) -> None:
    one, other = await under_test.open(LIMITS), await under_test.open(LIMITS)
    await claim_fresh(one, "a")
    for ledger in (one, other, one):
        assert await ledger.claim(name("a"), BODY) == InFlight()
    await claim_fresh(other, "b")


async def check_a_recorded_answer_is_replayed_to_everyone(under_test: LedgerUnderTest) -> None:
    one, other = await under_test.open(LIMITS), await under_test.open(LIMITS)
    await record(one, "a", ANSWER)
    await record(one, "large", ANSWER * 256)
    await record(one, "empty", b"")
    for ledger in (one, other, one):
        assert await ledger.claim(name("a"), BODY) == Replay(ANSWER)
        assert await ledger.claim(name("large"), BODY) == Replay(ANSWER * 256)
        assert await ledger.claim(name("empty"), BODY) == Replay(b"")


async def check_another_request_of_the_same_name_is_a_mismatch(under_test: LedgerUnderTest) -> None:
    one, other = await under_test.open(LIMITS), await under_test.open(LIMITS)
    claim = await claim_fresh(one, "a")
    assert await other.claim(name("a"), OTHER_BODY) == Mismatch()
    assert await one.record(claim, ANSWER)
    assert await other.claim(name("a"), OTHER_BODY) == Mismatch()
    assert await other.claim(name("a"), BODY) == Replay(ANSWER)


async def check_a_released_operation_runs_again_under_a_new_generation(under_test: LedgerUnderTest) -> None:
    one, other = await under_test.open(LIMITS), await under_test.open(LIMITS)
    first = await claim_fresh(one, "a")
    await one.release(first)
    await one.release(first)
    second = await claim_fresh(other, "a", OTHER_BODY)
    assert second.generation != first.generation
    assert not await one.record(first, b"late")
    await one.release(first)
    assert await one.claim(name("a"), OTHER_BODY) == InFlight()
    assert await other.record(second, ANSWER)
    await other.release(second)
    assert await one.claim(name("a"), OTHER_BODY) == Replay(ANSWER)


async def check_an_answer_is_recorded_once(under_test: LedgerUnderTest) -> None:
    ledger = await under_test.open(LIMITS)
    claim = await record(ledger, "a", ANSWER)
    assert not await ledger.record(claim, b"another answer")
    assert await ledger.claim(name("a"), BODY) == Replay(ANSWER)
    assert ledger.statistics().num_bytes == len(ANSWER)


async def check_one_of_many_simultaneous_claims_is_fresh(under_test: LedgerUnderTest) -> None:
    ledgers = [await under_test.open(LIMITS) for _ in range(2)]
    found = await asyncio.gather(*(ledgers[i % 2].claim(name("a"), BODY) for i in range(50)))
    assert sum(isinstance(answer, Fresh) for answer in found) == 1
    assert found.count(InFlight()) == 49


async def check_an_answer_is_kept_for_the_retention_and_no_longer(under_test: LedgerUnderTest) -> None:
    ledger = await under_test.open(LIMITS)
    await record(ledger, "a")
    await under_test.advance(LIMITS.retention_s - 5)
    assert await ledger.claim(name("a"), BODY) == Replay(ANSWER)
    await under_test.advance(10)
    await claim_fresh(ledger, "a", OTHER_BODY)


async def check_the_oldest_answers_go_first_and_running_ones_never(under_test: LedgerUnderTest) -> None:
    ledger = await under_test.open(LedgerLimits(100, max_entries=4, max_bytes=1 << 20))
    await claim_fresh(ledger, "running")
    for operation in ("a", "b", "c", "d", "e"):
        await record(ledger, operation)
        await under_test.advance(0.01)
    assert ledger.statistics().num_entries == 4
    assert ledger.statistics().num_evicted == 2
    assert await ledger.claim(name("running"), BODY) == InFlight()
    for operation in ("c", "d", "e"):
        assert await ledger.claim(name(operation), BODY) == Replay(ANSWER)
    await claim_fresh(ledger, "a")


async def check_a_ledger_full_of_running_operations_refuses(under_test: LedgerUnderTest) -> None:
    ledger = await under_test.open(LedgerLimits(100, max_entries=2, max_bytes=1 << 20))
    first = await claim_fresh(ledger, "a")
    await claim_fresh(ledger, "b")
    refusal: LedgerFull | None = None
    try:
        await ledger.claim(name("c"), BODY)
    except LedgerFull as full:
        refusal = full
    assert refusal is not None, "a third operation was taken"
    assert refusal.num_entries == 2
    assert await ledger.claim(name("a"), BODY) == InFlight()
    await ledger.release(first)
    await claim_fresh(ledger, "c")


async def check_answers_stay_within_their_bytes(under_test: LedgerUnderTest) -> None:
    ledger = await under_test.open(LedgerLimits(100, max_entries=1000, max_bytes=4 * len(ANSWER)))
    for i in range(10):
        await record(ledger, str(i))
        await under_test.advance(0.01)
        assert ledger.statistics().num_bytes <= 4 * len(ANSWER)
    assert ledger.statistics().num_entries == 4
    await record(ledger, "large", ANSWER * 3)
    assert await ledger.claim(name("large"), BODY) == Replay(ANSWER * 3)
    assert await ledger.claim(name("9"), BODY) == Replay(ANSWER)
    await claim_fresh(ledger, "8")


async def check_a_dead_process_blocks_nobody(under_test: LedgerUnderTest) -> None:
    dying, other = await under_test.open(LIMITS), await under_test.open(LIMITS)
    await record(dying, "done")
    lost = await claim_fresh(dying, "a")
    await claim_fresh(dying, "b")
    assert await other.claim(name("a"), BODY) == InFlight()
    await under_test.kill(dying)
    again = await claim_fresh(other, "a")
    assert again.generation != lost.generation
    await claim_fresh(other, "b", OTHER_BODY)
    assert await other.claim(name("done"), BODY) == Replay(ANSWER)


async def check_the_dead_make_room(under_test: LedgerUnderTest) -> None:
    limits = LedgerLimits(100, max_entries=2, max_bytes=1 << 20)
    dying, other = await under_test.open(limits), await under_test.open(limits)
    await claim_fresh(dying, "a")
    await claim_fresh(dying, "b")
    await under_test.kill(dying)
    await claim_fresh(other, "c")


async def check_a_closed_ledger_leaves_no_claim(under_test: LedgerUnderTest) -> None:
    one, other = await under_test.open(LIMITS), await under_test.open(LIMITS)
    await claim_fresh(one, "a")
    await record(one, "b")
    await one.aclose()
    await one.aclose()
    await claim_fresh(other, "a")
    assert await other.claim(name("b"), BODY) == Replay(ANSWER)


async def check_accounts_return_to_nothing(under_test: LedgerUnderTest) -> None:
    ledger = await under_test.open(LIMITS)
    claim = await claim_fresh(ledger, "a")
    await record(ledger, "b")
    assert (ledger.statistics().num_entries, ledger.statistics().num_bytes) == (2, len(ANSWER))
    await ledger.release(claim)
    await under_test.advance(LIMITS.retention_s + 5)
    await ledger.release(await claim_fresh(ledger, "b"))
    assert (ledger.statistics().num_entries, ledger.statistics().num_bytes) == (0, 0)


Check = Callable[[LedgerUnderTest], Awaitable[None]]

CHECKS: tuple[Check, ...] = (
    check_a_running_operation_is_in_flight_for_everyone,
    check_a_recorded_answer_is_replayed_to_everyone,
    check_another_request_of_the_same_name_is_a_mismatch,
    check_a_released_operation_runs_again_under_a_new_generation,
    check_an_answer_is_recorded_once,
    check_one_of_many_simultaneous_claims_is_fresh,
    check_an_answer_is_kept_for_the_retention_and_no_longer,
    check_the_oldest_answers_go_first_and_running_ones_never,
    check_a_ledger_full_of_running_operations_refuses,
    check_answers_stay_within_their_bytes,
    check_a_dead_process_blocks_nobody,
    check_the_dead_make_room,
    check_a_closed_ledger_leaves_no_claim,
    check_accounts_return_to_nothing,
)
