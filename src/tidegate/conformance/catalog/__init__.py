"""All cases, area by area, in the order of the report."""

from tidegate.conformance.case import Case
from tidegate.conformance.catalog import auth, chat, error_codes, errors, headers, models, routes

CASES: tuple[Case, ...] = (
    *routes.CASES,
    *models.CASES,
    *errors.CASES,
    *error_codes.CASES,
    *auth.CASES,
    *headers.CASES,
    *chat.CASES,
)
