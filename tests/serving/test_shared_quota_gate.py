"""SharedQuotaGate: the store is asked first, what the gate within refuses counts for nothing, and an away store hurts
nobody for longer than it must.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from harness.quota_desk import QuotaDesk
from tidegate.errors import InternalError, LimitFact, NoCapacity, QueueFull, RateLimited
from tidegate.lifecycle.principal import Principal, Quotas

RATES = Quotas(requests_per_minute=2, tokens_per_minute=100)
FREE, SLOTS = Quotas(), Quotas(concurrency=1)
Test = Callable[[QuotaDesk], Coroutine[Any, Any, None]]


def at_the_gate(test: Test, *, refuses_when_away: bool = False) -> QuotaDesk:
    """Runs a test; afterwards nothing may be open at the gate."""
    desk = QuotaDesk(refuses_when_away)

    async def main() -> None:
        desk.gate.start()
        try:
            await test(desk)
        finally:
            await desk.gate.aclose()
        assert desk.gate.num_open == 0
        assert desk.store.quotas.num_reservations == 0
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    return desk


def test_a_key_without_rates_never_waits_for_the_store() -> None:
    async def test(desk: QuotaDesk) -> None:
        desk.store.is_away = True
        caller = desk.enter("a", quotas=SLOTS)
        assert caller.answers == [None], "at once"
        desk.gate.leave("a", 0)

    at_the_gate(test)


def test_what_the_store_counted_is_told_and_not_counted_again_within() -> None:
    async def test(desk: QuotaDesk) -> None:
        caller = desk.enter("a", quotas=RATES, num_output_tokens=30)
        await caller.told()
        [rate] = caller.answers
        assert rate.remaining_requests == 1
        assert rate.remaining_tokens == 69
        assert desk.local.admission.statistics().num_keys == 0
        desk.gate.note_started("a")
        desk.gate.leave("a", 11)
        await desk.settled(1)
        [(reservation, num_used)] = desk.store.settled
        assert (reservation.num_tokens, num_used) == (31, 11)

    at_the_gate(test)


def test_a_quota_that_is_used_up_is_refused_and_counted() -> None:
    async def test(desk: QuotaDesk) -> None:
        for name in ("a", "b"):
            await desk.enter(name, quotas=RATES).told()
            desk.gate.leave(name, 0)
        refused = desk.enter("c", quotas=RATES)
        await refused.told()
        [error] = refused.answers
        assert isinstance(error, RateLimited)
        assert error.limit == LimitFact("requests_per_minute", 2, 3, "key")
        assert desk.gate.statistics().refusals == {"requests_per_minute": 1}
        desk.gate.leave("c", 0)

    at_the_gate(test)


def test_what_the_gate_within_refuses_counts_for_nothing() -> None:
    async def test(desk: QuotaDesk) -> None:
        desk.enter("full", quotas=FREE)
        waiting = [desk.enter(f"w{i}", quotas=FREE) for i in range(2)]
        refused = desk.enter("a", quotas=RATES)
        await refused.told()
        assert isinstance(refused.answers[0], QueueFull)
        await desk.settled(1)
        assert desk.store.settled[0][1] is None
        assert not any(caller.answers for caller in waiting)
        for name in ("full", "w0", "w1"):
            desk.gate.leave(name, 0)
        for name in ("b", "c"):
            await desk.enter(name, quotas=RATES).told()
            desk.gate.leave(name, 0)

    at_the_gate(test)


def test_who_leaves_while_the_store_is_asked_is_not_told_and_gets_its_tokens_back() -> None:
    async def test(desk: QuotaDesk) -> None:
        caller = desk.enter("a", quotas=RATES)
        desk.gate.leave("a", 0)
        await desk.settled(1)
        assert caller.answers == []
        assert desk.store.settled[0][1] == 0

    at_the_gate(test)


def test_who_leaves_while_it_waits_gives_its_tokens_back() -> None:
    async def test(desk: QuotaDesk) -> None:
        desk.enter("full", quotas=FREE)
        caller = desk.enter("a", quotas=RATES)
        await desk.asked()
        desk.gate.leave("a", 0)
        desk.gate.leave("full", 0)
        await desk.settled(1)
        assert caller.answers == []
        assert desk.store.settled[0][1] == 0

    at_the_gate(test)


def test_without_the_store_each_server_counts_alone() -> None:
    async def test(desk: QuotaDesk) -> None:
        desk.store.is_away = True
        for name in ("a", "b"):
            caller = desk.enter(name, quotas=RATES)
            await caller.told()
            assert caller.answers[0].limit_requests == 2
            desk.gate.leave(name, 0)
        refused = desk.enter("c", quotas=RATES)
        await refused.told()
        assert isinstance(refused.answers[0], RateLimited)
        slot = await desk.gate.claim_slot(Principal("k", "k", quotas=SLOTS))
        with pytest.raises(RateLimited):
            await desk.gate.claim_slot(Principal("k", "k", quotas=SLOTS))
        desk.store.is_away = False
        other = await desk.gate.claim_slot(Principal("k", "k", quotas=SLOTS))
        slot.release()
        other.release()
        desk.gate.leave("c", 0)
        assert desk.store.settled == []

    at_the_gate(test)


def test_without_the_store_keys_with_quotas_are_refused_where_that_is_wanted() -> None:
    async def test(desk: QuotaDesk) -> None:
        desk.store.is_away = True
        refused = desk.enter("a", quotas=RATES)
        await refused.told()
        assert isinstance(refused.answers[0], NoCapacity)
        with pytest.raises(NoCapacity):
            await desk.gate.claim_slot(Principal("k", "k", quotas=SLOTS))
        free = desk.enter("b", quotas=FREE)
        assert free.answers == [None]
        desk.gate.leave("b", 0)
        desk.gate.leave("a", 0)
        assert desk.gate.statistics().refusals == {"no_capacity": 2}

    at_the_gate(test, refuses_when_away=True)


def test_a_slot_is_given_back_once() -> None:
    async def test(desk: QuotaDesk) -> None:
        slot = await desk.gate.claim_slot(Principal("k", "k", quotas=SLOTS))
        assert desk.gate.statistics().num_slots == 1
        with pytest.raises(RateLimited):
            await desk.gate.claim_slot(Principal("k", "k", quotas=SLOTS))
        slot.release()
        slot.release()
        await desk.idle()
        (await desk.gate.claim_slot(Principal("k", "k", quotas=SLOTS))).release()
        await desk.idle()
        assert desk.gate.statistics().num_slots == 0
        assert desk.gate.statistics().refusals == {"concurrency": 1}

    at_the_gate(test)


@pytest.mark.parametrize("is_away", [False, True])
def test_an_entrant_that_fails_harms_nobody_else(is_away: bool) -> None:
    async def test(desk: QuotaDesk) -> None:
        desk.store.is_away = is_away
        broken = desk.enter("a", quotas=RATES, raises=True)
        await broken.told()
        await desk.idle()
        assert isinstance(broken.answers[-1], InternalError)
        assert len(desk.faults) >= 1
        other = desk.enter("b", quotas=RATES)
        await other.told()
        assert not isinstance(other.answers[0], Exception)
        desk.gate.leave("b", 0)

    at_the_gate(test)


def test_a_ticket_enters_once() -> None:
    async def test(desk: QuotaDesk) -> None:
        await desk.enter("a", quotas=RATES).told()
        with pytest.raises(InternalError):
            desk.enter("a", quotas=RATES)
        desk.gate.leave("a", 0)

    at_the_gate(test)
