"""Tools that a caller offers, and the choice among them (OpenAI chat completions)."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tidegate.contract.bounds import FunctionName


class FunctionDefinition(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`parameters` is a JSON Schema object; absent means no parameters."""

    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(Struct, frozen=True, kw_only=True, tag_field="type", tag="function"):
    function: FunctionDefinition


class TextInput(Struct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Any text."""


class InputGrammar(Struct, frozen=True, kw_only=True):
    syntax: Literal["lark", "regex"]
    definition: str


class GrammarInput(Struct, frozen=True, kw_only=True, tag_field="type", tag="grammar"):
    """Text that a grammar describes."""

    grammar: InputGrammar


class CustomDefinition(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool whose input is plain text; absent `format`: any text."""

    name: FunctionName
    description: str | None = None
    format: TextInput | GrammarInput | None = None


class CustomTool(Struct, frozen=True, kw_only=True, tag_field="type", tag="custom"):
    custom: CustomDefinition


Tool = FunctionTool | CustomTool


class ToolName(Struct, frozen=True, kw_only=True):
    name: str


class FunctionChoice(Struct, frozen=True, kw_only=True, tag_field="type", tag="function"):
    function: ToolName


class CustomChoice(Struct, frozen=True, kw_only=True, tag_field="type", tag="custom"):
    custom: ToolName


class AllowedTools(Struct, frozen=True, kw_only=True):
    mode: Literal["auto", "required"]
    tools: Annotated[list[FunctionChoice | CustomChoice], Meta(min_length=1)]


class AllowedToolsChoice(Struct, frozen=True, kw_only=True, tag_field="type", tag="allowed_tools"):
    allowed_tools: AllowedTools


ToolChoice = Literal["none", "auto", "required"] | FunctionChoice | CustomChoice | AllowedToolsChoice
FunctionCallChoice = Literal["none", "auto"] | ToolName
"""The deprecated `function_call`."""
