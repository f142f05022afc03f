"""Offers of tools that no server can meet: refused, in words, before anything runs."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity, expect
from tidegate.conformance.catalog.scripts import plays_calls
from tidegate.conformance.catalog.tool_bodies import COLOUR, COLOUR_ARGUMENTS, RED, function_tool, named, tool_body
from tidegate.conformance.checks.invalid_value import is_refused, is_refused_before_streaming, names_fault
from tidegate.conformance.checks.taken_answer import has_answer
from tidegate.conformance.checks.tool_calls import nothing_is_called
from tidegate.conformance.probing.capability import Capability

_WHY = "The mistake shows up far from its cause: as a call that no client can run, or as none."

_BROKEN: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    (
        "name_characters",
        "A name of other characters than letters, digits, _ and -",
        "names",
        tool_body(function_tool("pick a colour!", COLOUR_ARGUMENTS)),
    ),
    ("name_length", "A name of more than 64 characters", "names", tool_body(function_tool("n" * 65, COLOUR_ARGUMENTS))),
    (
        "name_missing",
        "A function without a name",
        "names",
        tool_body({"type": "function", "function": {"description": "?", "parameters": COLOUR_ARGUMENTS}}),
    ),
    ("function_missing", "A tool of type function without `function`", "offer", tool_body({"type": "function"})),
    (
        "type_unknown",
        "A tool of an unknown type",
        "offer",
        tool_body({"type": "spell", "spell": {"name": "pick_colour"}}),
    ),
    (
        "parameters_not_object",
        "`parameters` that are no object",
        "parameters",
        tool_body(function_tool("pick_colour", "colour")),
    ),
    ("tools_not_list", "`tools` that are no list", "offer", tool_body() | {"tools": COLOUR}),
    ("choice_unknown_word", "A tool_choice that is no known word", "choice_values", tool_body(tool_choice="sometimes")),
    (
        "choice_not_offered",
        "A tool_choice that names a tool that is not offered",
        "choice_named",
        tool_body(tool_choice=named("open_door")),
    ),
)

_EXACT: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    (
        "exact_name",
        "A bad name is `invalid_value`, and `param` is its path",
        tool_body(COLOUR, function_tool("a b")),
        {"code": "invalid_value", "param": "tools[1].function.name"},
    ),
    (
        "exact_name_length",
        "A name that is too long is `invalid_value`, and `param` is its path",
        tool_body(function_tool("n" * 65)),
        {"code": "invalid_value", "param": "tools[0].function.name"},
    ),
    (
        "exact_twins",
        "Two tools of one name are refused",
        tool_body(COLOUR, COLOUR),
        {"code": "invalid_value", "param": "tools[1].function.name"},
    ),
    (
        "exact_parameters",
        "`parameters` of another type than `object` are refused at their path",
        tool_body(function_tool("pick_colour", {"type": "string"})),
        {"code": "invalid_value", "param": "tools[0].function.parameters.type"},
    ),
    (
        "exact_choice",
        "A choice of a tool that is not offered is refused at `tool_choice`",
        tool_body(tool_choice=named("open_door")),
        {"code": "invalid_value", "param": "tool_choice"},
    ),
    (
        "exact_required_without_tools",
        "`required` without tools is refused at `tool_choice`",
        tool_body() | {"tools": [], "tool_choice": "required"},
        {"code": "invalid_value", "param": "tool_choice"},
    ),
    (
        "exact_schema",
        "A strict tool's schema that is none is `invalid_schema` at its path",
        tool_body(
            function_tool("pick_colour", {"type": "object", "properties": {"a": {"type": "colour"}}}, strict=True)
        ),
        {"code": "invalid_schema", "param": "tools[0].function.parameters.properties.a.type"},
    ),
    (
        "exact_unenforced",
        "A strict tool's keyword that is not enforced is `unsupported_schema` at its path",
        tool_body(
            function_tool(
                "pick_colour",
                {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)y"}}},
                strict=True,
            )
        ),
        {"code": "unsupported_schema", "param": "tools[0].function.parameters.properties.a.pattern"},
    ),
    (
        "exact_mixed",
        "`functions` beside `tools` are refused",
        tool_body(functions=[{"name": "pick_colour"}]),
        {"code": "invalid_value", "param": "functions"},
    ),
    (
        "exact_count",
        "More than 128 tools are refused, and the limit is named",
        tool_body(*(function_tool(f"tool_{n}") for n in range(129))),
        {"code": "invalid_value", "param": "tools", "limit": "tools"},
    ),
)


def _broken(name: str, what: str, clause: str, body: dict[str, Any]) -> Case:
    return Case(
        id=f"tools.refuses_{name}",
        title=f"{what} is refused",
        why=_WHY,
        clauses=(f"openai:tools.{clause}", "openai:errors.blame"),
        severity=Severity.NUISANCE,
        needs=(Capability.TOOLS,),
        asks=(Ask(body=body),),
        expects=(expect(is_refused),),
    )


def _is_strict(body: dict[str, Any]) -> bool:
    """Schemas are looked at where they are enforced: a server without constraints refuses strict tools as such."""
    return any(tool["function"].get("strict") for tool in body.get("tools", ()))


def _exact(name: str, title: str, body: dict[str, Any], args: dict[str, Any]) -> Case:
    return Case(
        id=f"tools.{name}",
        title=title,
        why="A developer looks for the fault in the wrong place.",
        clauses=("tidegate:errors.param", "tidegate:tools.offer"),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=(Capability.FORCED_TOOLS if _is_strict(body) else Capability.TOOLS,),
        asks=(Ask(body=body),),
        expects=(expect(names_fault, **args),),
    )


CASES: tuple[Case, ...] = (
    *(_broken(*row) for row in _BROKEN),
    *(_exact(*row) for row in _EXACT),
    Case(
        id="tools.refuses_before_streaming",
        title="A choice of a tool that is not offered is refused with a status, also where a stream was asked for",
        why="A 200 tells load balancers and retries that all is well; many clients never see an error inside a stream.",
        clauses=("openai:tools.choice_named", "openai:errors.status", "openai:errors.blame"),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.TOOLS, Capability.STREAMS),
        asks=(
            Ask(name="whole", body=tool_body(tool_choice=named("open_door"))),
            Ask(body=tool_body(tool_choice=named("open_door"), stream=True)),
        ),
        expects=(expect(is_refused_before_streaming, "whole", "it"),),
    ),
    Case(
        id="tools.refuses_required_without_tools",
        title="tool_choice `required` without tools is refused",
        why="The caller is promised a call that cannot come, and waits for it.",
        clauses=("openai:tools.choice_required", "openai:errors.blame"),
        severity=Severity.NUISANCE,
        needs=(Capability.FORCED_TOOLS,),
        asks=(Ask(body={name: value for name, value in tool_body(tool_choice="required").items() if name != "tools"}),),
        expects=(expect(is_refused),),
    ),
    Case(
        id="tools.empty_list_is_none",
        title="An empty list of tools is the same as none",
        why="Frameworks send the list whether or not something is in it.",
        clauses=("tidegate:tools.empty",),
        severity=Severity.BREAKS_CLIENTS,
        profile=Profile.TIDEGATE,
        needs=(Capability.CHAT,),
        asks=(Ask(body=tool_body(max_tokens=8) | {"tools": []}, script=plays_calls(RED)),),
        expects=(expect(has_answer), expect(nothing_is_called)),
    ),
)
