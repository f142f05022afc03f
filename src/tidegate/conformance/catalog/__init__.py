"""All cases, area by area, in the order of the report."""

from tidegate.conformance.case import Case
from tidegate.conformance.catalog import (
    admin,
    cancellation,
    chat,
    completions,
    contract,
    deadlines,
    drain,
    idempotency,
    isolation,
    models,
    overload,
    routes,
    slow,
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
    *deadlines.CASES,
    *slow.CASES,
    *overload.CASES,
    *isolation.CASES,
    *admin.CASES,
    *contract.CASES,
    *drain.CASES,
)
