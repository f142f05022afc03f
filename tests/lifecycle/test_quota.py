"""KeyQuotas: windows of a minute that tell the truth about when to come back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import LimitFact, RateFacts, RateLimited
from tidegate.lifecycle.principal import Quotas
from tidegate.lifecycle.quota import KeyQuotas, Reservation
from tidegate.lifecycle.quota_account import MAX_RETRY_AFTER_S, WINDOW_S

THREE = Quotas(requests_per_minute=3)
HUNDRED = Quotas(tokens_per_minute=100)


def take(quotas: KeyQuotas, limits: Quotas, num_tokens: int, now: float, key: str = "k") -> Reservation:
    quotas.check(key, limits, now)
    reservation = quotas.reserve(key, limits, num_tokens, now)
    assert reservation is not None
    return reservation


def refused(quotas: KeyQuotas, limits: Quotas, now: float, key: str = "k") -> RateLimited:
    with pytest.raises(RateLimited) as refusal:
        quotas.check(key, limits, now)
    return refusal.value


def test_requests_of_a_minute_are_counted_from_the_first() -> None:  # RL-1
    quotas = KeyQuotas()
    for i in range(3):
        take(quotas, THREE, 5, 100.0 + i)
        assert quotas.facts("k", THREE, 100.0 + i) == RateFacts(3, 2 - i, 60.0 - i)
    error = refused(quotas, THREE, 110.5)
    assert error.limit == LimitFact("requests_per_minute", 3, 4, "key")
    assert error.rate == RateFacts(3, 0, 49.5)
    assert error.retry_after_s == 50
    assert refused(quotas, THREE, 159.9).retry_after_s == 1
    take(quotas, THREE, 5, 160.0)
    assert quotas.facts("k", THREE, 161.0) == RateFacts(3, 2, 59.0)


def test_tokens_that_were_not_used_are_given_back_and_remaining_does_not_rise() -> None:  # RL-1
    quotas = KeyQuotas()
    first = take(quotas, HUNDRED, 90, 0.0)
    quotas.settle(first, HUNDRED, 20, 1.0)
    assert quotas.facts("k", HUNDRED, 1.0) == RateFacts(limit_tokens=100, remaining_tokens=10, reset_tokens_s=59.0)
    second = take(quotas, HUNDRED, 79, 2.0)
    assert quotas.facts("k", HUNDRED, 2.0) == RateFacts(limit_tokens=100, remaining_tokens=1, reset_tokens_s=58.0)
    quotas.settle(second, HUNDRED, 79, 3.0)
    take(quotas, HUNDRED, 1, 4.0)
    assert refused(quotas, HUNDRED, 4.0).limit == LimitFact("tokens_per_minute", 100, 101, "key")


def test_the_last_request_of_a_window_may_overdraw_and_the_debt_is_carried() -> None:
    quotas = KeyQuotas()
    take(quotas, HUNDRED, 150, 0.0)
    error = refused(quotas, HUNDRED, 10.0)
    assert (error.retry_after_s, error.limit) == (50, LimitFact("tokens_per_minute", 100, 151, "key"))
    assert quotas.facts("k", HUNDRED, 60.0) == RateFacts(limit_tokens=100, remaining_tokens=50, reset_tokens_s=60.0)
    take(quotas, HUNDRED, 50, 61.0)
    assert refused(quotas, HUNDRED, 61.0).retry_after_s == 59


def test_a_request_larger_than_a_whole_quota_runs_and_is_paid_for_by_waiting() -> None:
    quotas = KeyQuotas()
    take(quotas, HUNDRED, 450, 0.0)
    for now, retry_after_s in ((0.0, 120), (100.0, 120), (130.0, 110), (200.0, 40), (239.5, 1)):
        error = refused(quotas, HUNDRED, now)
        assert error.retry_after_s == retry_after_s
        assert error.rate is not None
        assert error.rate.reset_tokens_s == pytest.approx(retry_after_s, abs=1.0)
    take(quotas, HUNDRED, 50, 240.0)


def test_what_is_given_back_late_pays_off_only_what_was_carried() -> None:
    quotas = KeyQuotas()
    long = take(quotas, HUNDRED, 150, 0.0)
    take(quotas, HUNDRED, 10, 60.0)
    assert quotas.facts("k", HUNDRED, 60.0) == RateFacts(limit_tokens=100, remaining_tokens=40, reset_tokens_s=60.0)
    quotas.settle(long, HUNDRED, 5, 61.0)
    take(quotas, HUNDRED, 90, 62.0)
    assert refused(quotas, HUNDRED, 62.0).retry_after_s == 58


def test_a_place_that_the_server_takes_back_counts_for_nothing() -> None:
    quotas, limits = KeyQuotas(), Quotas(requests_per_minute=1, tokens_per_minute=10)
    quotas.cancel(take(quotas, limits, 10, 0.0), limits, 1.0)
    take(quotas, limits, 10, 2.0)
    assert refused(quotas, limits, 2.0).limit == LimitFact("requests_per_minute", 1, 2, "key")
    assert quotas.num_reservations == 1


def test_slots_come_back_one_for_one() -> None:
    quotas, limits = KeyQuotas(), Quotas(concurrency=2, requests_per_minute=9)
    quotas.claim_slot("k", limits, 0.0)
    quotas.claim_slot("k", limits, 0.0)
    with pytest.raises(RateLimited) as refusal:
        quotas.claim_slot("k", limits, 0.0)
    assert refusal.value.limit == LimitFact("concurrency", 2, 3, "key")
    assert refusal.value.rate == RateFacts(9, 9, 0.0)
    assert refusal.value.retry_after_s == 1
    quotas.claim_slot("other", limits, 0.0)
    quotas.release_slot("k")
    quotas.claim_slot("k", limits, 0.0)
    assert quotas.num_slots == 3


def test_a_quota_may_change_while_it_is_used() -> None:
    quotas = KeyQuotas()
    take(quotas, THREE, 1, 0.0)
    wider, narrower = Quotas(requests_per_minute=10), Quotas(requests_per_minute=1)
    assert refused(quotas, narrower, 1.0).rate == RateFacts(1, 0, 59.0)
    take(quotas, wider, 1, 2.0)


def test_keys_without_rates_leave_no_trace() -> None:
    quotas = KeyQuotas()
    quotas.check("k", Quotas(), 0.0)
    assert quotas.reserve("k", Quotas(), 5, 0.0) is None
    assert quotas.facts("k", Quotas(), 0.0) is None
    assert quotas.num_keys == 0


def test_the_number_of_keys_is_bounded_and_live_ones_stay() -> None:  # OVL-8
    quotas = KeyQuotas(max_keys=10)
    busy = take(quotas, THREE, 1, 0.0, "busy")
    quotas.claim_slot("slot", THREE, 0.0)
    for i in range(1000):
        quotas.cancel(take(quotas, THREE, 1, 0.0, f"k{i}"), THREE, 0.0)
        assert quotas.num_keys <= 10
    quotas.settle(busy, THREE, 1, 0.0)
    quotas.release_slot("slot")
    assert quotas.num_slots == quotas.num_reservations == 0


REQUESTS = st.lists(
    st.tuples(st.floats(0, 25), st.integers(0, 120), st.floats(0, 1), st.booleans()), min_size=1, max_size=40
)


def check_refusal(error: RateLimited) -> None:
    """Nothing is refused before "remaining" was 0, and both headers name the same instant."""
    assert error.rate is not None
    assert error.limit is not None
    remaining, reset_s = {
        "requests_per_minute": (error.rate.remaining_requests, error.rate.reset_requests_s),
        "tokens_per_minute": (error.rate.remaining_tokens, error.rate.reset_tokens_s),
    }[error.limit.name]
    assert remaining == 0
    assert reset_s is not None
    assert 0 <= error.retry_after_s - reset_s < 1
    assert 1 <= error.retry_after_s <= MAX_RETRY_AFTER_S


def left(facts: RateFacts | None) -> tuple[int, int, float]:
    """What a caller is told is left, and for how long."""
    assert facts is not None
    assert facts.remaining_requests is not None
    assert facts.remaining_tokens is not None
    assert facts.reset_requests_s is not None
    return facts.remaining_requests, facts.remaining_tokens, facts.reset_requests_s


@settings(max_examples=150, deadline=None)
@given(REQUESTS, st.integers(1, 8), st.integers(1, 200))
def test_what_callers_are_told_holds(  # RL-1
    requests: list[tuple[float, int, float, bool]], num_requests: int, num_tokens: int
) -> None:
    """In any traffic: inside a window "remaining" only falls, refusals tell the truth, and the average holds."""
    limits = Quotas(requests_per_minute=num_requests, tokens_per_minute=num_tokens)
    quotas, now, spent = KeyQuotas(), 0.0, 0
    told = (num_requests, num_tokens, 0.0)
    for pause, cost, share, is_settled in requests:
        now, ends_at = now + pause, now + told[2]
        used = round(cost * share) if is_settled else cost
        try:
            reservation = take(quotas, limits, cost, now)
        except RateLimited as error:
            check_refusal(error)
        else:
            spent += used
            if is_settled:
                quotas.settle(reservation, limits, used, now)
        before, told = told, left(quotas.facts("k", limits, now))
        if now + told[2] == pytest.approx(ends_at):
            assert told[:2] <= before[:2]
            assert told[1] <= before[1]
    assert spent <= num_tokens * (now // WINDOW_S + 2) + 120
