"""What every `QuotaStore` must do, as checks that a store's author runs against the store.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_store(check): asyncio.run(run_against_my_store(check))

A check raises AssertionError when the store breaks the port's rules (`lifecycle/quota_port.py`), which are those of
`lifecycle/quota_account.py`: `memory_quotas.py` keeps them with the code that a server alone counts with.
"""

from collections.abc import Awaitable, Callable
from random import Random
from typing import Protocol

from tidegate.errors import RateFacts, RateLimited
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.quota_account import WINDOW_S
from tidegate.lifecycle.quota_port import QuotaStore, SharedReservation, SharedSlot
from tidegate.testing.memory_quotas import MemoryQuotas


class QuotasUnderTest(Protocol):
    """A store that is empty at first, and servers that share it. Its clock may run on by itself, but not far."""

    async def open(self) -> QuotaStore:
        """Returns the store as one more server has it."""
        ...

    async def advance(self, duration_s: float) -> None:
        """Lets time pass for rates."""
        ...


THREE, HUNDRED, TWO_SLOTS = Quotas(requests_per_minute=3), Quotas(tokens_per_minute=100), Quotas(concurrency=2)
BOTH = Quotas(2, 5, 200)


async def refusal(asked: Awaitable[object]) -> RateLimited:
    """Returns the refusal that must come."""
    answer = await _try(asked)
    assert isinstance(answer, RateLimited), f"not refused: {answer}"
    assert answer.limit is not None
    assert answer.limit.scope == "key"
    return answer


def limit_of(error: RateLimited) -> tuple[str, int, int]:
    assert error.limit is not None
    return error.limit.name, error.limit.value, error.limit.actual


async def check_requests_of_a_minute_count_over_all_servers(under_test: QuotasUnderTest) -> None:
    one, other = await under_test.open(), await under_test.open()
    for left, store in zip((2, 1, 0), (one, other, one), strict=True):
        taken = await store.reserve("k", THREE, 5)
        assert taken.facts.remaining_requests == left
        assert taken.facts.limit_requests == 3
    for store in (one, other):
        error = await refusal(store.reserve("k", THREE, 5))
        assert limit_of(error) == ("requests_per_minute", 3, 4)
        assert error.rate is not None
        assert error.rate.remaining_requests == 0
        assert 1 <= error.retry_after_s <= WINDOW_S
    assert (await other.reserve("another", THREE, 5)).facts.remaining_requests == 2
    await under_test.advance(WINDOW_S)
    assert (await other.reserve("k", THREE, 5)).facts.remaining_requests == 2


async def check_tokens_that_were_not_used_come_back_and_remaining_does_not_rise(under_test: QuotasUnderTest) -> None:
    one, other = await under_test.open(), await under_test.open()
    first = await one.reserve("k", HUNDRED, 90)
    await one.settle(first, 20)
    second = await other.reserve("k", HUNDRED, 79)
    assert second.facts.remaining_tokens == 1, "20 and 79 are used"
    await other.settle(second, 79)
    third = await one.reserve("k", HUNDRED, 1)
    assert third.facts.remaining_tokens == 0
    assert limit_of(await refusal(other.reserve("k", HUNDRED, 1))) == ("tokens_per_minute", 100, 101)
    await one.settle(third, 0)
    assert (await other.reserve("k", HUNDRED, 1)).facts.remaining_tokens == 0, "it never rises inside a window"


async def check_what_the_server_takes_back_counts_for_nothing(under_test: QuotasUnderTest) -> None:
    one, other = await under_test.open(), await under_test.open()
    for _ in range(5):
        await one.settle(await one.reserve("k", THREE, 50), None)
    assert (await other.reserve("k", THREE, 50)).key_id == "k"


async def check_the_last_request_of_a_window_may_overdraw_and_its_debt_is_carried(under_test: QuotasUnderTest) -> None:
    one, other = await under_test.open(), await under_test.open()
    await one.reserve("k", HUNDRED, 250)
    assert limit_of(await refusal(other.reserve("k", HUNDRED, 1)))[2] == 251
    await under_test.advance(WINDOW_S)
    assert limit_of(await refusal(other.reserve("k", HUNDRED, 1)))[2] == 151
    await under_test.advance(WINDOW_S)
    assert (await other.reserve("k", HUNDRED, 10)).facts.remaining_tokens == 40
    await under_test.advance(2 * WINDOW_S)
    assert (await one.reserve("k", HUNDRED, 10)).facts.remaining_tokens == 90


async def check_what_is_given_back_late_pays_off_a_debt_and_no_more(under_test: QuotasUnderTest) -> None:
    one, other = await under_test.open(), await under_test.open()
    large = await one.reserve("k", HUNDRED, 150)
    await under_test.advance(WINDOW_S)
    assert (await other.reserve("k", HUNDRED, 10)).facts.remaining_tokens == 40
    await one.settle(large, 0)
    assert (await other.reserve("k", HUNDRED, 10)).facts.remaining_tokens == 40, "it never rises inside a window"
    assert (await other.reserve("k", HUNDRED, 75)).facts.remaining_tokens == 5, "10, 10 and 75 are used"


async def check_slots_count_over_all_servers(under_test: QuotasUnderTest) -> None:
    one, other = await under_test.open(), await under_test.open()
    first = await one.claim_slot("k", TWO_SLOTS)
    second = await other.claim_slot("k", TWO_SLOTS)
    for store in (one, other):
        error = await refusal(store.claim_slot("k", TWO_SLOTS))
        assert limit_of(error) == ("concurrency", 2, 3)
        assert (error.retry_after_s, error.rate) == (1, None)
    elsewhere = await other.claim_slot("another", TWO_SLOTS)
    await one.release_slot(first)
    await one.release_slot(first)
    third = await other.claim_slot("k", TWO_SLOTS)
    await refusal(one.claim_slot("k", TWO_SLOTS))
    for store, slot in ((other, second), (other, third), (other, elsewhere)):
        await store.release_slot(slot)
    assert one.statistics().num_slots == 0


async def check_a_refused_slot_says_what_is_left_of_the_rates(under_test: QuotasUnderTest) -> None:
    store = await under_test.open()
    await store.reserve("k", BOTH, 30)
    for _ in range(2):
        await store.claim_slot("k", BOTH)
    error = await refusal(store.claim_slot("k", BOTH))
    assert error.rate is not None
    assert (error.rate.remaining_requests, error.rate.remaining_tokens) == (4, 170)


async def check_quotas_may_change_at_any_time(under_test: QuotasUnderTest) -> None:
    store = await under_test.open()
    await store.reserve("k", HUNDRED, 60)
    assert (await store.reserve("k", Quotas(tokens_per_minute=1000), 10)).facts.remaining_tokens == 40
    assert limit_of(await refusal(store.reserve("k", Quotas(tokens_per_minute=50), 1))) == ("tokens_per_minute", 50, 71)
    assert limit_of(await refusal(store.reserve("k", Quotas(requests_per_minute=2), 1)))[0] == "requests_per_minute"


async def check_any_history_is_counted_as_one_server_counts_it(under_test: QuotasUnderTest) -> None:
    """Two servers, two keys, any order: the store says what a server alone would say."""
    stores = [await under_test.open(), await under_test.open()]
    for seed in range(12):
        await _replay(Random(seed), stores, under_test, keys=[f"{seed}-{i}" for i in range(2)])


async def _replay(dice: Random, stores: list[QuotaStore], under_test: QuotasUnderTest, keys: list[str]) -> None:
    alone = MemoryQuotas()
    quotas = Quotas(3, dice.choice([None, 4]), dice.choice([50, 100, 10**12]))
    open_ones: list[tuple[SharedReservation, SharedReservation]] = []
    slots: list[tuple[QuotaStore, SharedSlot, SharedSlot]] = []
    for _ in range(60):
        store, key_id = dice.choice(stores), dice.choice(keys)
        match dice.randrange(6):
            case 0 | 1:
                num_tokens = dice.choice([0, 1, 30, 130])
                pair = [await _try(ledger.reserve(key_id, quotas, num_tokens)) for ledger in (store, alone)]
                _agree(*pair)
                if isinstance(pair[0], SharedReservation) and isinstance(pair[1], SharedReservation):
                    open_ones.append((pair[0], pair[1]))
            case 2 if open_ones:
                theirs, ours = open_ones.pop(dice.randrange(len(open_ones)))
                num_used = dice.choice([None, 0, ours.num_tokens // 2, ours.num_tokens, 2 * ours.num_tokens])
                await store.settle(theirs, num_used)
                await alone.settle(ours, num_used)
            case 3:
                claims = [await _try(ledger.claim_slot(key_id, quotas)) for ledger in (store, alone)]
                _agree(*claims)
                if isinstance(claims[0], SharedSlot) and isinstance(claims[1], SharedSlot):
                    slots.append((store, claims[0], claims[1]))
            case 4 if slots:
                holder, theirs_slot, ours_slot = slots.pop(dice.randrange(len(slots)))
                await holder.release_slot(theirs_slot)
                await alone.release_slot(ours_slot)
            case 5:
                duration_s = dice.choice([1.0, 29.0, 61.0, 130.0])
                await under_test.advance(duration_s)
                alone.advance(duration_s)
    for holder, slot, _ in slots:
        await holder.release_slot(slot)


async def _try(asked: Awaitable[object]) -> object:
    try:
        return await asked
    except RateLimited as error:
        return error


def _agree(theirs: object, ours: object) -> None:
    """Compares two answers; times may differ by what the store's clock ran on by itself."""
    assert type(theirs) is type(ours), f"{theirs} is not {ours}"
    if isinstance(theirs, RateLimited) and isinstance(ours, RateLimited):
        assert theirs.limit == ours.limit, f"{theirs.limit} is not {ours.limit}"
        _agree_facts(theirs.rate, ours.rate)
    elif isinstance(theirs, SharedReservation) and isinstance(ours, SharedReservation):
        _agree_facts(theirs.facts, ours.facts)


def _agree_facts(theirs: RateFacts | None, ours: RateFacts | None) -> None:
    assert (theirs is None) == (ours is None)
    if theirs is None or ours is None:
        return
    counts = ("limit_requests", "remaining_requests", "limit_tokens", "remaining_tokens")
    assert [getattr(theirs, name) for name in counts] == [getattr(ours, name) for name in counts]
    for name in ("reset_requests_s", "reset_tokens_s"):
        one, other = getattr(theirs, name), getattr(ours, name)
        assert (one is None) == (other is None)


CHECKS: tuple[Callable[[QuotasUnderTest], Awaitable[None]], ...] = (
    check_requests_of_a_minute_count_over_all_servers,
    check_tokens_that_were_not_used_come_back_and_remaining_does_not_rise,
    check_what_the_server_takes_back_counts_for_nothing,
    check_the_last_request_of_a_window_may_overdraw_and_its_debt_is_carried,
    check_what_is_given_back_late_pays_off_a_debt_and_no_more,
    check_slots_count_over_all_servers,
    check_a_refused_slot_says_what_is_left_of_the_rates,
    check_quotas_may_change_at_any_time,
    check_any_history_is_counted_as_one_server_counts_it,
)
