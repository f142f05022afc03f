"""All cases, area by area, in the order of the report."""

from tidegate.conformance.case import Case
from tidegate.conformance.catalog import (
    auth,
    cancellation,
    chat,
    completions,
    error_codes,
    errors,
    headers,
    hostile,
    idempotency,
    limits,
    models,
    parameter_effects,
    parameter_kinds,
    parameter_rules,
    parameters,
    routes,
    stream,
    stream_framing,
)

CASES: tuple[Case, ...] = (
    *routes.CASES,
    *models.CASES,
    *errors.CASES,
    *error_codes.CASES,
    *auth.CASES,
    *headers.CASES,
    *parameters.CASES,
    *parameter_kinds.CASES,
    *parameter_effects.CASES,
    *parameter_rules.CASES,
    *limits.CASES,
    *hostile.CASES,
    *chat.CASES,
    *completions.CASES,
    *stream.CASES,
    *stream_framing.CASES,
    *idempotency.CASES,
    *cancellation.CASES,
)
