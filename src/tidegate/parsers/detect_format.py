"""Which family a chat template is written for: from what the template shows, to the names of two formats.

Decides by evidence, the strongest first: an assistant turn with a call, rendered by the template and read back by a
family's own parser; then markers in the template's source that only one family writes. A template that renders calls
which no family reads back has no format here, whatever its markers. Reasoning is told by its markers alone.

Does not know how templates are rendered, nor what an operator has set. A model may have learnt what its template does
not show; that is what the settings are for.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from tidegate.inference.event import ToolCallArguments, ToolCallStarted
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.parsers.reasoning_families import REASONING
from tidegate.parsers.tool_format import ChannelCalls, ReasoningMarkers, ToolFormat
from tidegate.parsers.tool_parser import ToolParser

PROBE_TOOL = "zebra_tool"
PROBE_ARGUMENTS = {"zebra_key": "zebra-Q7"}
PROBE_SCHEMA = {
    "type": "object",
    "properties": {"zebra_key": {"type": "string", "description": "A key."}},
    "required": ["zebra_key"],
}
"""The call that a template is given to render: words that occur nowhere else."""

GENERIC_FORMAT = "json"
"""For forced calls of models without a format. Its calls look like any JSON, so that nothing is evidence for it but
a template that asks for them."""

_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("harmony", ("<|channel|>", "<|message|>")),
    ("deepseek_v32", ("｜DSML｜",)),
    ("deepseek_v3", ("<｜tool▁call▁begin｜>", "```json")),
    ("deepseek_v31", ("<｜tool▁call▁begin｜>",)),
    ("step3", ("<steptml:invoke",)),
    ("kimi_k2", ("<|tool_call_begin|>", "<|tool_call_argument_begin|>")),
    ("minimax_m2", ("<minimax:tool_call>",)),
    ("seed_oss", ("<seed:tool_call>",)),
    ("qwen3_coder", ("<tool_call>", "<function=", "<parameter=")),
    ("glm45", ("<tool_call>", "<arg_key>")),
    ("command_a", ("<|START_ACTION|>",)),
    ("granite", ("<|tool_call|>",)),
    ("gemma4", ("<|tool_call>",)),
    ("functiongemma", ("<start_function_call>",)),
    ("mistral", ("[TOOL_CALLS]",)),
    ("nemotron", ("<TOOLCALL>",)),
    ("apriel", ("<tool_calls>", "[BEGIN FINAL RESPONSE]")),
    ("jamba", ("<tool_calls>",)),
    ("internlm2", ("<|action_start|>", "<|plugin|>")),
    ("lfm2", ("<|tool_call_start|>",)),
    ("olmo3", ("<function_calls>",)),
    ("phi4_mini", ("<|tool|>", "<|/tool|>")),
    ("llama4_pythonic", ("<|python_start|>",)),
    ("llama3_json", ("<|python_tag|>",)),
    ("hermes", ("<tool_call>",)),
    (GENERIC_FORMAT, ("[BEGIN OF AVAILABLE_TOOLS]",)),
)
"""Families by what must all stand in a template's source; the first row that does counts, the narrower before the
wider."""

_REASONING_MARKS = ("apriel", "seed_oss", "mistral", "command_a", "gemma4", "think")
"""Reasoning formats by their own markers, for templates whose tool family has none in the source."""


@dataclass(frozen=True, slots=True)
class TemplateView:
    """What a model's templates show.

    `sources`: the templates. `call_turns`: the assistant's turn with the probe's call, in each way of rendering it;
    none where the template leaves calls out or fails. `supports_tools`: offered tools reach the prompt.
    """

    sources: tuple[str, ...]
    call_turns: tuple[str, ...] = ()
    supports_tools: bool = False


@dataclass(frozen=True, slots=True)
class FoundFormat:
    """The name of a format, None for none, and why, in a phrase."""

    name: str | None
    why: str


def detect_tool_format(view: TemplateView) -> FoundFormat:
    """Returns the family of `FAMILIES` that the template is written for."""
    source = "\n".join(view.sources)
    readers = [form for form in FAMILIES.values() if form.name != GENERIC_FORMAT and reads_back(form, view.call_turns)]
    if readers:
        # Formats may share a marker: of those that read the call, the one whose markers the template has counts.
        best = max(readers, key=lambda form: _share_in(source, form))
        return FoundFormat(best.name, "from the chat template: its calls read back")
    if view.call_turns:
        return FoundFormat(None, "the chat template writes calls in a way that no format here knows")
    for name, marks in _MARKS:
        if all(mark in source for mark in marks):
            return FoundFormat(name, f"from the chat template: it has {marks[0]}")
    if view.supports_tools:
        return FoundFormat(None, "the chat template shows tools, and no way of calling them")
    return FoundFormat(None, "the chat template knows no tools")


def detect_reasoning_format(view: TemplateView, tool: ToolFormat | None) -> FoundFormat:
    """Returns the format of `REASONING` whose markers the template has; `tool` is the model's family."""
    if tool is not None and isinstance(tool.style, ChannelCalls):
        return FoundFormat(tool.name, "told apart by its channels")
    source = "\n".join(view.sources)
    own = [tool.name] if tool is not None and tool.reasoning is not None else []
    for name in (*own, *_REASONING_MARKS):
        markers = REASONING[name]
        if markers is not None and (mark := _first_mark(source, markers)) is not None:
            return FoundFormat(name, f"from the chat template: it has {mark.strip()}")
    return FoundFormat(None, "the chat template has no markers of reasoning")


def reads_back(form: ToolFormat, turns: Iterable[str]) -> bool:
    """Whether the family's parser finds the probe's call, and nothing but it, in one of the turns."""
    return any(_reads(form, turn) for turn in turns)


def _reads(form: ToolFormat, turn: str) -> bool:
    parser = ToolParser(form, OfferedTools([(PROBE_TOOL, PROBE_SCHEMA)]), lambda: "call")
    events = [*parser.feed(turn), *parser.finish()]
    num_calls = sum(isinstance(event, ToolCallStarted) for event in events)
    arguments = "".join(event.fragment for event in events if isinstance(event, ToolCallArguments))
    return num_calls == 1 and _decoded(arguments) == PROBE_ARGUMENTS


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def _share_in(source: str, form: ToolFormat) -> float:
    """Returns which part of a family's markers a source has; 0 for a family without markers."""
    reasoning = form.reasoning
    marks = [*form.opens, *form.dropped, *((*reasoning.opens, *reasoning.closes) if reasoning is not None else ())]
    return sum(mark in source for mark in marks) / len(marks) if marks else 0.0


def _first_mark(source: str, markers: ReasoningMarkers) -> str | None:
    """Phrases of plain words are no evidence: a template's instructions may hold them."""
    marks = (*markers.opens, *markers.closes)
    return next((mark for mark in marks if mark in source and not mark[0].isalpha()), None)
