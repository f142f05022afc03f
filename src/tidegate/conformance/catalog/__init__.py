"""All cases, area by area, in the order of the report."""

from tidegate.conformance.case import Case
from tidegate.conformance.catalog import cancellation, chat, completions, idempotency, stream, stream_framing

CASES: tuple[Case, ...] = (
    *chat.CASES,
    *completions.CASES,
    *stream.CASES,
    *stream_framing.CASES,
    *idempotency.CASES,
    *cancellation.CASES,
)
