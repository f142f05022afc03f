"""All cases, area by area, in the order of the report."""

from tidegate.conformance.case import Case
from tidegate.conformance.catalog import (
    cancellation,
    chat,
    completions,
    idempotency,
    models,
    routes,
    stream,
    stream_framing,
)

CASES: tuple[Case, ...] = (
    *routes.CASES,
    *models.CASES,
    *chat.CASES,
    *completions.CASES,
    *stream.CASES,
    *stream_framing.CASES,
    *idempotency.CASES,
    *cancellation.CASES,
)
