"""How the served model writes what is not plain content: its tool calls and its reasoning.

Decides both formats once, when the model is loaded: by the operator's settings, else by the chat template. Does not
know requests.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from tidegate.errors import InvalidRequest
from tidegate.parsers.detect_format import (
    GENERIC_FORMAT,
    PROBE_ARGUMENTS,
    PROBE_SCHEMA,
    PROBE_TOOL,
    FoundFormat,
    TemplateView,
    detect_reasoning_format,
    detect_tool_format,
)
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.reasoning_families import REASONING
from tidegate.parsers.tool_format import ChannelCalls, ReasoningMarkers, ToolFormat
from tidegate.text.chat_template import ChatInput, ChatTemplates

AUTO, NONE = "auto", "none"
Message: TypeAlias = dict[str, object]
_DATE = datetime(2025, 1, 1, tzinfo=UTC)
_USER: Message = {"role": "user", "content": "hello"}
_TOOL: Message = {
    "type": "function",
    "function": {"name": PROBE_TOOL, "description": "A tool.", "parameters": PROBE_SCHEMA},
}
_CALL_IDS = ("call00001", f"functions.{PROBE_TOOL}:0")
"""Of Mistral's nine characters, and of Kimi's form, which holds the name."""
_VALUE = PROBE_ARGUMENTS["zebra_key"]


ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning"]


GENERIC = FAMILIES[GENERIC_FORMAT]
"""The format of models that have none of their own."""


class UnknownFormat(Exception):
    """A setting names a format that is not here; the message lists those that are."""


@dataclass(frozen=True, slots=True)
class OutputFormats:
    """Fixed for the life of the server, and part of the served revision. None: the model has no such format.

    Where the model has no tool format of its own, calls are written and read in the generic one
    (`parsers.families.FAMILIES["json"]`). `reads_unforced` is False where an operator said that there is none: then
    only calls that a request forces are read, and all other text stays text. `reasoning.is_open` holds where an
    operator chose the format: then a prompt without markers counts as one that ends inside reasoning. Harmony tells
    reasoning apart by its channels: its `reasoning` is None.
    """

    tool: ToolFormat | None = None
    reasoning: ReasoningMarkers | None = None
    reasoning_name: str | None = None
    """The name under which `reasoning` was chosen."""
    reasoning_field: ReasoningField = "reasoning_content"
    """The member of messages and deltas that carries reasoning."""
    reads_unforced: bool = True
    tool_why: str = "not looked for"
    reasoning_why: str = "not looked for"

    @property
    def call_format(self) -> ToolFormat:
        """How calls are written where there are any."""
        return self.tool or GENERIC

    @property
    def tool_name(self) -> str | None:
        """The format in which calls are looked for in all text; None for nowhere."""
        return self.call_format.name if self.tool is not None or self.reads_unforced else None

    @property
    def channels(self) -> ChannelCalls | None:
        """The style of a model whose whole output is messages in channels."""
        style = self.tool.style if self.tool is not None else None
        return style if isinstance(style, ChannelCalls) else None

    @property
    def tells_reasoning(self) -> bool:
        """Whether reasoning can come out of this model's text."""
        return self.reasoning is not None or self.channels is not None


NO_FORMATS = OutputFormats()


def choose_formats(
    view: TemplateView,
    *,
    tool_setting: str = AUTO,
    reasoning_setting: str = AUTO,
    reasoning_field: ReasoningField = "reasoning_content",
) -> OutputFormats:
    """Returns the formats of a model. Each setting is a name, `auto` or `none`. Raises UnknownFormat."""
    found = _set_format("model.tool_format", tool_setting, FAMILIES) or detect_tool_format(view)
    tool = None if found.name is None else FAMILIES[found.name]
    channels = [tool.name] if tool is not None and isinstance(tool.style, ChannelCalls) else []
    names = [*channels, *(name for name, markers in REASONING.items() if markers is not None)]
    set_one = _set_format("model.reasoning_format", reasoning_setting, names)
    if channels and set_one is not None and set_one.name != channels[0]:
        raise UnknownFormat(
            f"model.reasoning_format {reasoning_setting!r} does not go with the tool format {channels[0]}, which tells "
            f"reasoning apart by its channels. Leave it {AUTO}."
        )
    told = set_one or detect_reasoning_format(view, tool)
    markers = None if told.name is None else REASONING[told.name]
    if markers is not None and set_one is None:
        # What a template puts into its prompts is seen in each prompt.
        markers = replace(markers, is_open=False)
    return OutputFormats(tool, markers, told.name, reasoning_field, tool_setting != NONE, found.why, told.why)


def _set_format(setting: str, value: str, names: Iterable[str]) -> FoundFormat | None:
    """Returns what an operator has chosen, None where it is left to the template."""
    if value == AUTO:
        return None
    if value == NONE:
        return FoundFormat(None, f"by setting {setting}")
    if value not in names:
        known = ", ".join((AUTO, NONE, *sorted(set(names))))
        raise UnknownFormat(f"{setting} is {value[:64]!r}, which is no format here; known are {known}")
    return FoundFormat(value, f"by setting {setting}")


def view_templates(sources: Iterable[str], templates: ChatTemplates) -> TemplateView:
    """Renders the probe's conversations and returns what the templates show."""
    turns: list[str] = []
    choices: tuple[list[Message] | None, ...] = ([_TOOL], None)
    for tools in choices:
        before = [text for wants in (True, False) if (text := _render(templates, [_USER], tools, wants)) is not None]
        for call_id in _CALL_IDS:
            turns += _call_turns(templates, tools, call_id, before)
    shown = _render(templates, [_USER], [_TOOL], True)
    has_tools = shown is not None and PROBE_TOOL in shown
    return TemplateView(tuple(sources), tuple(dict.fromkeys(turns)), has_tools)


def _call_turns(
    templates: ChatTemplates, tools: list[Message] | None, call_id: str, before: list[str]
) -> Iterable[str]:
    """Yields the turn with a call: behind the prompt that the model would have gone on from where it is one."""
    function = {"name": PROBE_TOOL, "arguments": PROBE_ARGUMENTS}
    calling: Message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }
    answer: Message = {"role": "tool", "tool_call_id": call_id, "content": "done"}
    conversations: tuple[list[Message], ...] = ([_USER, calling], [_USER, calling, answer])
    for messages in conversations:
        text = _render(templates, messages, tools, False)
        if text is None or _VALUE not in text:
            continue
        starts = [len(prompt) for prompt in before if text.startswith(prompt)]
        for start in starts or [text.find(str(_USER["content"])) + len(str(_USER["content"]))]:
            yield text[start:]


def _render(templates: ChatTemplates, messages: list[Message], tools: list[Message] | None, wants: bool) -> str | None:
    chat = ChatInput(messages, tools, add_generation_prompt=wants)
    try:
        return templates.select(has_tools=tools is not None).render(chat, date=_DATE).text
    except InvalidRequest:
        return None
