"""`X-RateLimit-*`: only where there is a quota, in the forms that clients know."""

import pytest

from tidegate.contract.error_table import error_answer
from tidegate.contract.rate_headers import format_reset, rate_headers
from tidegate.errors import LimitFact, QueueFull, RateFacts, RateLimited


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0s"), (-1.0, "0s"), (0.001, "1s"), (1.0, "1s"), (59.2, "1m0s"), (360.0, "6m0s"), (3605.0, "1h0m5s")],
)
def test_a_reset_is_whole_seconds_in_units(seconds: float, text: str) -> None:  # RL-1
    assert format_reset(seconds) == text


def test_a_key_without_quotas_gets_no_headers() -> None:  # RL-1
    assert rate_headers(None) == rate_headers(RateFacts()) == []


def test_each_quota_has_its_three_headers() -> None:  # RL-1
    requests = [
        ("X-RateLimit-Limit-Requests", "60"),
        ("X-RateLimit-Remaining-Requests", "0"),
        ("X-RateLimit-Reset-Requests", "1m0s"),
    ]
    tokens = [
        ("X-RateLimit-Limit-Tokens", "1000"),
        ("X-RateLimit-Remaining-Tokens", "17"),
        ("X-RateLimit-Reset-Tokens", "3s"),
    ]
    assert rate_headers(RateFacts(60, 0, 60.0)) == requests
    assert rate_headers(RateFacts(limit_tokens=1000, remaining_tokens=17, reset_tokens_s=2.5)) == tokens
    assert rate_headers(RateFacts(60, 0, 60.0, 1000, 17, 2.5)) == requests + tokens


def test_a_refusal_by_a_quota_carries_them_too() -> None:  # RL-1
    limit = LimitFact("requests_per_minute", 60, 61, "key")
    refusal = RateLimited("Slow down.", retry_after_s=60, limit=limit, rate=RateFacts(60, 0, 60.0))
    headers = dict(error_answer(refusal).headers)
    assert headers["X-RateLimit-Remaining-Requests"] == "0"
    assert headers["X-RateLimit-Reset-Requests"] == "1m0s"
    assert headers["Retry-After"] == "60"
    assert not [name for name in dict(error_answer(QueueFull("Full.")).headers) if name.startswith("X-RateLimit")]
