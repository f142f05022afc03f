"""What callers are told about the ledger: how long, how much, and what happens at each bound."""

from dataclasses import dataclass
from typing import Literal

StoreKind = Literal["sqlite", "redis", "off"]


@dataclass(frozen=True, slots=True)
class LedgerRules:
    """For `/v1/contract` and the docs. With `store` "off" a request with the header is answered 422.

    `when_full`: of the bounds `max_entries` and `max_bytes`.
    `when_answer_too_large`: beyond `max_answer_bytes`. `when_unreachable`: the store does not answer a claim.
    `after_failure`: refused, failed, cancelled.
    """

    store: StoreKind
    retention_s: int
    max_entries: int
    max_bytes: int
    max_answer_bytes: int
    when_full: str = "the oldest answers are forgotten; 503 no_capacity while every entry is a running request"
    when_answer_too_large: str = "answered_not_recorded"
    when_unreachable: str = "refused_503"
    after_failure: str = "retry_runs_afresh"
