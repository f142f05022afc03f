"""All cases, area by area, in the order of the report."""

from tidegate.conformance.case import Case
from tidegate.conformance.catalog import (
    cancellation,
    chat,
    idempotency,
    models,
    routes,
)

CASES: tuple[Case, ...] = (
    *routes.CASES,
    *models.CASES,
    *chat.CASES,
    *idempotency.CASES,
    *cancellation.CASES,
)
