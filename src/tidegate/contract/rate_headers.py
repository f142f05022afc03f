"""`X-RateLimit-*`: what a key with quotas has left, under the names and in the forms that OpenAI's clients know."""

import math

from tidegate.errors import RateFacts

_PREFIX = "X-RateLimit"


def rate_headers(facts: RateFacts | None) -> list[tuple[str, str]]:
    """Returns the headers for the quotas that the key has: limit, remaining, and when the quota is full again."""
    if facts is None:
        return []
    kinds = (
        ("Requests", facts.limit_requests, facts.remaining_requests, facts.reset_requests_s),
        ("Tokens", facts.limit_tokens, facts.remaining_tokens, facts.reset_tokens_s),
    )
    answer: list[tuple[str, str]] = []
    for kind, limit, remaining, reset_s in kinds:
        if limit is None:
            continue
        answer.append((f"{_PREFIX}-Limit-{kind}", str(limit)))
        answer.append((f"{_PREFIX}-Remaining-{kind}", str(max(remaining or 0, 0))))
        answer.append((f"{_PREFIX}-Reset-{kind}", format_reset(reset_s or 0.0)))
    return answer


def format_reset(seconds: float) -> str:
    """Returns a duration as whole seconds, rounded up, from the largest unit that is not 0: `17s`, `6m0s`, `1h0m5s`."""
    minutes, whole_s = divmod(max(0, math.ceil(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{whole_s}s"
    return f"{minutes}m{whole_s}s" if minutes else f"{whole_s}s"
