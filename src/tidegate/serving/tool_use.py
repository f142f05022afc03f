"""What a request may do with its tools: which the model is shown, which it may call, and whether it must.

Every form of `tool_choice`, and the deprecated `functions`, become one `ToolUse`:

| choice | shown | callable | must call | calls |
|---|---|---|---|---|
| `none` | none | none | no | none |
| `auto`, or nothing | all | all | no | many |
| `required` | all | all | yes | many |
| one named | all | that one | yes | one |
| `allowed_tools` | the allowed | the allowed | by its mode | many |

`parallel_tool_calls: false` and deprecated requests: one call. Under `none` the model is not shown the tools, because
one that sees them writes calls all the same, and their markup would be the caller's answer. Requests have been checked
before (`tool_rules`). Does not know how a model family writes calls.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.contract.chat import ChatRequest
from tidegate.contract.codec import encode_json
from tidegate.contract.tokenize import TokenizeRequest
from tidegate.contract.tools import (
    AllowedToolsChoice,
    CustomChoice,
    CustomDefinition,
    CustomTool,
    FunctionChoice,
    FunctionDefinition,
    GrammarInput,
    Tool,
    ToolChoice,
    ToolName,
)
from tidegate.inference.finish import FinishReason
from tidegate.inference.grammar_parts import LarkPart, PatternPart
from tidegate.parsers.custom_inputs import INPUT_KEY
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.parsers.tool_grammar import GrammarTool

_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class ShownTool:
    """One tool as a function, which is all that models know. `place`: where its schema or grammar was given.

    `strict_place`: the member that asks for enforcement, None where none does. `text`: a custom tool, and what its
    input must look like.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    place: str
    strict_place: str | None = None
    text: PatternPart | LarkPart | None = None

    def to_template(self) -> dict[str, object]:
        """Returns the tool as chat templates expect it, every member present."""
        members = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": members}

    def to_grammar(self) -> GrammarTool:
        schema = None if self.text is not None else encode_json(self.parameters)
        return GrammarTool(self.name, schema, self.strict_place is not None, self.place, self.text, INPUT_KEY)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """`must_place`: the member of the request that demands a call, None where none does."""

    shown: tuple[ShownTool, ...] = ()
    callable: tuple[ShownTool, ...] = ()
    must_place: str | None = None
    allows_many: bool = True
    is_named: bool = False
    is_legacy: bool = False

    @property
    def enforced_place(self) -> str | None:
        """The member of the request that needs a grammar, None where none does."""
        strict = (tool.strict_place for tool in self.callable if tool.strict_place is not None)
        return self.must_place or next(strict, None)

    @property
    def calls_finish(self) -> FinishReason:
        """Why a choice ends that has called: OpenAI says `stop` where the caller named the function."""
        if self.is_named:
            return FinishReason.STOP
        return FinishReason.FUNCTION_CALL if self.is_legacy else FinishReason.TOOL_CALLS

    def offered(self) -> OfferedTools:
        """Returns the callable tools as parsers need them."""
        custom = [tool.name for tool in self.callable if tool.text is not None]
        return OfferedTools([(tool.name, tool.parameters) for tool in self.callable], custom)


NO_TOOLS = ToolUse()


def tool_use(request: ChatRequest | TokenizeRequest) -> ToolUse:
    """Returns what a checked request may do with its tools; a tokenize request has no choice, and so all are shown."""
    if isinstance(request, ChatRequest) and request.functions:
        return _legacy_use(request)
    tools = request.tools or []
    shown = tuple(_shown(tool, f"tools[{i}]") for i, tool in enumerate(tools))
    if not shown:
        return NO_TOOLS
    if not isinstance(request, ChatRequest):
        return ToolUse(shown, shown)
    allows_many = request.parallel_tool_calls is not False
    return _choose(request.tool_choice or "auto", shown, allows_many=allows_many)


def _choose(choice: ToolChoice, shown: tuple[ShownTool, ...], *, allows_many: bool) -> ToolUse:
    match choice:
        case "none":
            return NO_TOOLS
        case "auto":
            return ToolUse(shown, shown, allows_many=allows_many)
        case "required":
            return ToolUse(shown, shown, "tool_choice", allows_many)
        case AllowedToolsChoice():
            names = {_named(one) for one in choice.allowed_tools.tools}
            allowed = tuple(tool for tool in shown if tool.name in names)
            must_place = "tool_choice.allowed_tools.mode" if choice.allowed_tools.mode == "required" else None
            return ToolUse(allowed, allowed, must_place, allows_many)
        case FunctionChoice() | CustomChoice():
            named = tuple(tool for tool in shown if tool.name == _named(choice))
            return ToolUse(shown, named, "tool_choice", allows_many=False, is_named=True)
    raise TypeError(type(choice).__name__)


def _named(choice: FunctionChoice | CustomChoice) -> str:
    return choice.function.name if isinstance(choice, FunctionChoice) else choice.custom.name


def _legacy_use(request: ChatRequest) -> ToolUse:
    shown = tuple(_shown_function(one, f"functions[{i}]") for i, one in enumerate(request.functions or []))
    choice = request.function_call
    if choice == "none":
        return NO_TOOLS
    if isinstance(choice, ToolName):
        named = tuple(tool for tool in shown if tool.name == choice.name)
        return ToolUse(shown, named, "function_call", allows_many=False, is_named=True, is_legacy=True)
    return ToolUse(shown, shown, allows_many=False, is_legacy=True)


def _shown(tool: Tool, place: str) -> ShownTool:
    if isinstance(tool, CustomTool):
        return _shown_custom(tool.custom, f"{place}.custom")
    return _shown_function(tool.function, f"{place}.function")


def _shown_function(one: FunctionDefinition, place: str) -> ShownTool:
    parameters = _NO_PARAMETERS if one.parameters is None else one.parameters
    if one.parameters is None and one.strict:
        parameters = {**_NO_PARAMETERS, "additionalProperties": False}
    strict_place = f"{place}.strict" if one.strict else None
    return ShownTool(one.name, one.description or "", parameters, f"{place}.parameters", strict_place)


def _shown_custom(one: CustomDefinition, place: str) -> ShownTool:
    """A custom tool is a function with one string; what the string must look like is said in its description."""
    text: PatternPart | LarkPart = PatternPart("")
    member = {"type": "string", "description": "Plain text."}
    strict_place = None
    if isinstance(one.format, GrammarInput):
        grammar, strict_place = one.format.grammar, f"{place}.format"
        definition_place = f"{place}.format.grammar.definition"
        is_lark = grammar.syntax == "lark"
        text = (
            LarkPart(grammar.definition, definition_place)
            if is_lark
            else PatternPart(grammar.definition, definition_place)
        )
        kind = "Lark grammar" if is_lark else "regular expression"
        member["description"] = f"Plain text that this {kind} describes:\n{grammar.definition}"
    parameters = {"type": "object", "properties": {INPUT_KEY: member}, "required": [INPUT_KEY]}
    return ShownTool(one.name, one.description or "", parameters, f"{place}.format", strict_place, text)
