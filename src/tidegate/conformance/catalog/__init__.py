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
    structured,
    structured_extension,
    structured_refused,
    tool_arguments,
    tools,
    tools_history,
    tools_refused,
    tools_streamed,
)

CASES: tuple[Case, ...] = (
    *routes.CASES,
    *models.CASES,
    *chat.CASES,
    *completions.CASES,
    *stream.CASES,
    *stream_framing.CASES,
    *tools.CASES,
    *tool_arguments.CASES,
    *tools_streamed.CASES,
    *tools_history.CASES,
    *tools_refused.CASES,
    *structured.CASES,
    *structured_extension.CASES,
    *structured_refused.CASES,
    *idempotency.CASES,
    *cancellation.CASES,
)
