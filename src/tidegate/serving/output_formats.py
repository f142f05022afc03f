"""How the served model writes what is not plain content: its tool calls and its reasoning."""

from dataclasses import dataclass

from tidegate.parsers.tool_format import ReasoningMarkers, ToolFormat


@dataclass(frozen=True, slots=True)
class OutputFormats:
    """Fixed for the life of the server, and part of the served revision. None: the model has no such format."""

    tool: ToolFormat | None = None
    reasoning: ReasoningMarkers | None = None
    reasoning_name: str | None = None
    """The name under which `reasoning` was chosen."""


NO_FORMATS = OutputFormats()
