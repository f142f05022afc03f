"""All cases, area by area, in the order of the report."""

from tidegate.conformance.case import Case
from tidegate.conformance.catalog import (
    chat,
    tool_arguments,
    tools,
    tools_history,
    tools_refused,
    tools_streamed,
)

CASES: tuple[Case, ...] = (
    *chat.CASES,
    *tools.CASES,
    *tool_arguments.CASES,
    *tools_streamed.CASES,
    *tools_history.CASES,
    *tools_refused.CASES,
)
