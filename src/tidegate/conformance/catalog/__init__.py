"""All cases, area by area, in the order of the report."""

from tidegate.conformance.case import Case
from tidegate.conformance.catalog import cancellation, chat, deadlines, idempotency, overload, slow

CASES: tuple[Case, ...] = (
    *chat.CASES,
    *idempotency.CASES,
    *cancellation.CASES,
    *deadlines.CASES,
    *slow.CASES,
    *overload.CASES,
)
