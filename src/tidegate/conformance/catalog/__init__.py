"""All cases, area by area, in the order of the report."""

from tidegate.conformance.case import Case
from tidegate.conformance.catalog import (
    cancellation,
    chat,
    choices,
    completions,
    idempotency,
    logprobs,
    models,
    routes,
    seeds,
    stop,
    stream,
    stream_framing,
    unicode,
    usage,
)

CASES: tuple[Case, ...] = (
    *routes.CASES,
    *models.CASES,
    *chat.CASES,
    *completions.CASES,
    *stream.CASES,
    *stream_framing.CASES,
    *stop.CASES,
    *unicode.CASES,
    *logprobs.CASES,
    *usage.CASES,
    *choices.CASES,
    *seeds.CASES,
    *idempotency.CASES,
    *cancellation.CASES,
)
