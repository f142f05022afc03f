"""Makes the parser of one choice: the family's reasoning outside, its tool calls inside."""

from collections.abc import Callable

from tidegate.parsers.custom_inputs import CustomInputParser
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.parsers.parser import OutputParser
from tidegate.parsers.plain import PlainParser
from tidegate.parsers.reasoning_families import REASONING
from tidegate.parsers.reasoning_parser import ReasoningParser
from tidegate.parsers.tool_format import ChannelCalls, ReasoningMarkers, ToolFormat
from tidegate.parsers.tool_parser import ToolParser


def build_parser(
    form: ToolFormat | None,
    tools: OfferedTools,
    mint_id: Callable[[], str],
    *,
    reasoning: ReasoningMarkers | None = None,
    is_open: bool | None = None,
) -> OutputParser:
    """Returns a parser for one choice's text.

    `form`: the family, None where the model has no format for calls. `tools`: none where calls are not wanted, all
    text is content then. `reasoning`: the markers, None where reasoning is not told apart (harmony does it by itself).
    `is_open`: whether the rendered prompt ended inside reasoning; None: as usual for the family.
    """
    inner: OutputParser = ToolParser(form, tools, mint_id) if form and needs_form(form, tools) else PlainParser()
    if tools.custom_names:
        inner = CustomInputParser(inner, tools.custom_names)
    return inner if reasoning is None else ReasoningParser(reasoning, inner, is_open=is_open)


def needs_form(form: ToolFormat | None, tools: OfferedTools) -> bool:
    """Whether a family's markup has to be read: for calls, or because its content stands in markup too."""
    return form is not None and bool(tools or form.dropped or isinstance(form.style, ChannelCalls))


def family_named(name: str) -> ToolFormat:
    """Returns a family. Raises KeyError for a name that is not in `FAMILIES`."""
    return FAMILIES[name]


def reasoning_named(name: str) -> ReasoningMarkers | None:
    """Returns a family's reasoning markers, None where it has none. Raises KeyError for an unknown name."""
    return REASONING[name]
