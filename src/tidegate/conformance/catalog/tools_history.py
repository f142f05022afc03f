"""Tools over several turns, tools of other kinds, and the fields that came before tools."""

from typing import Any

from tidegate.conformance.ask import Ask, Derived
from tidegate.conformance.case import Case, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body
from tidegate.conformance.catalog.scripts import plays, plays_calls
from tidegate.conformance.catalog.tool_bodies import BUDGET, COLOUR, COLOUR_ARGUMENTS, QUESTION, RED, named, tool_body
from tidegate.conformance.checks.custom_tools import custom_input_matches
from tidegate.conformance.checks.function_calls import function_is_called, streamed_function_is_called
from tidegate.conformance.checks.invalid_value import is_refused, names_fault
from tidegate.conformance.checks.taken_answer import has_answer
from tidegate.conformance.checks.tool_history import with_results
from tidegate.conformance.probing.capability import Capability

_CALL = {"id": "call_1", "type": "function", "function": {"name": RED[0], "arguments": RED[1]}}
_RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "Red it is."}
_PATTERN = "[a-f]{3}-[0-9]{2}"


def _turns(assistant: Any, *results: Any) -> dict[str, Any]:
    body = tool_body(max_tokens=16)
    turns = [{"role": "user", "content": QUESTION}, {"role": "assistant", **assistant}, *results]
    return body | {"messages": [*turns, {"role": "user", "content": "Thank you. Which one was it?"}]}


def _accepted(name: str, title: str, body: dict[str, Any], profile: Profile = Profile.OPENAI) -> Case:
    return Case(
        id=f"tools.{name}",
        title=title,
        why="The second turn of every agent fails.",
        clauses=("openai:messages.tool_turns",),
        severity=Severity.BREAKS_CLIENTS,
        profile=profile,
        needs=(Capability.TOOLS,),
        asks=(Ask(body=body, script=plays("It was red.")),),
        expects=(expect(has_answer),),
    )


def _custom(name: str, title: str, syntax: str, definition: str, **fields: Any) -> Case:
    tool = {
        "type": "custom",
        "custom": {
            "name": "tag",
            "description": "Sets a tag.",
            "format": {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}},
        },
    }
    return Case(
        id=f"tools.custom_{name}",
        title=title,
        why="The text goes into a program that reads nothing else: a patch, a query, a command.",
        clauses=("openai:tools.custom",),
        severity=Severity.WRONG_DATA,
        needs=(Capability.CUSTOM_TOOLS, *((Capability.STREAMS,) if fields else ())),
        asks=(
            Ask(
                body=tool_body(tool, tool_choice={"type": "custom", "custom": {"name": "tag"}}, **fields),
                script=plays_calls(("tag", '{"input": "abc-12"}')),
                is_refusable=True,
            ),
        ),
        expects=(expect(has_answer), expect(custom_input_matches, name="tag", pattern=_PATTERN)),
    )


_LEGACY = chat_body(
    QUESTION,
    functions=[{"name": "pick_colour", "description": "?", "parameters": COLOUR_ARGUMENTS}],
    function_call={"name": "pick_colour"},
    max_tokens=BUDGET,
)
CASES: tuple[Case, ...] = (
    Case(
        id="tools.round_trip",
        title="An answer with calls, sent back as it came with its results, is accepted",
        why="This is how every agent goes on.",
        clauses=("openai:messages.tool_turns",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.FORCED_TOOLS,),
        asks=(
            Ask(name="call", body=tool_body(tool_choice=named("pick_colour")), script=plays_calls(RED)),
            Ask(
                name="it",
                body=tool_body(max_tokens=16)
                | {"messages": Derived(with_results, ("call",), {"question": QUESTION, "result": "Done."})},
                script=plays("It is red."),
                wave=1,
            ),
        ),
        expects=(expect(has_answer, "call"), expect(has_answer)),
    ),
    _accepted(
        "history_null_content",
        "Null content beside tool calls of an earlier turn is accepted",
        _turns({"content": None, "tool_calls": [_CALL]}, _RESULT),
    ),
    _accepted(
        "history_no_content",
        "Tool calls of an earlier turn without content are accepted",
        _turns({"tool_calls": [_CALL]}, _RESULT),
    ),
    _accepted(
        "history_text_beside",
        "Text beside tool calls of an earlier turn is accepted",
        _turns({"content": "Let me see.", "tool_calls": [_CALL]}, _RESULT),
    ),
    _accepted(
        "history_parts",
        "A result in text parts is accepted",
        _turns({"content": "", "tool_calls": [_CALL]}, _RESULT | {"content": [{"type": "text", "text": "Red."}]}),
    ),
    _accepted(
        "history_two_results",
        "Results of two calls, in another order than the calls, are accepted",
        _turns(
            {"content": "", "tool_calls": [_CALL, _CALL | {"id": "call_2"}]},
            _RESULT | {"tool_call_id": "call_2"},
            _RESULT,
        ),
    ),
    Case(
        id="tools.refuses_result_without_id",
        title="A result without `tool_call_id` is refused",
        why="The model reads a result without knowing of what.",
        clauses=("openai:messages.tool_turns", "openai:errors.blame"),
        severity=Severity.NUISANCE,
        needs=(Capability.TOOLS,),
        asks=(Ask(body=_turns({"content": "", "tool_calls": [_CALL]}, {"role": "tool", "content": "Red."})),),
        expects=(expect(is_refused),),
    ),
    Case(
        id="tools.exact_result_without_id",
        title="A result without `tool_call_id` is `missing_field` at its path",
        why="A developer looks for the fault in the wrong place.",
        clauses=("tidegate:errors.param", "tidegate:messages.tool_result"),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=(Capability.TOOLS,),
        asks=(Ask(body=_turns({"content": None, "tool_calls": [_CALL]}, {"role": "tool", "content": "Red."})),),
        expects=(expect(names_fault, code="missing_field", param="messages[2].tool_call_id"),),
    ),
    Case(
        id="tools.exact_turn_without_anything",
        title="An assistant's turn with neither content nor calls is `missing_field` at its path",
        why="A template writes the word None, or nothing, into the prompt.",
        clauses=("tidegate:errors.param", "openai:messages.tool_turns"),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=(Capability.TOOLS,),
        asks=(Ask(body=_turns({"content": None})),),
        expects=(expect(names_fault, code="missing_field", param="messages[1].content"),),
    ),
    _custom("regex", "A custom tool's input keeps its regular expression", "regex", _PATTERN),
    _custom("lark", "A custom tool's input keeps its Lark grammar", "lark", 'start: /[a-f]{3}/ "-" /[0-9]{2}/'),
    _custom(
        "streamed", "A custom tool's input keeps its regular expression in a stream", "regex", _PATTERN, stream=True
    ),
    Case(
        id="tools.legacy_functions",
        title="`functions` with `function_call` give a `function_call`, or are refused",
        why="Older clients send them; a server that ignores them answers prose.",
        clauses=("openai:tools.legacy",),
        severity=Severity.NUISANCE,
        needs=(Capability.FORCED_TOOLS,),
        asks=(Ask(body=_LEGACY, script=plays_calls(RED), is_refusable=True),),
        expects=(expect(has_answer), expect(function_is_called, name=COLOUR["function"]["name"])),
    ),
    Case(
        id="tools.streamed_legacy_functions",
        title="A stream tells a `function_call` in fragments: the name once, and arguments that join to JSON",
        why="Older clients stream too; the official one joins the strings of fragments, a repeated name among them.",
        clauses=("openai:tools.legacy", "openai:stream.same_answer"),
        severity=Severity.NUISANCE,
        needs=(Capability.FORCED_TOOLS, Capability.STREAMS),
        asks=(
            Ask(name="whole", body=_LEGACY, script=plays_calls(RED), is_refusable=True),
            Ask(body=_LEGACY | {"stream": True}, script=plays_calls(RED), wave=1, is_refusable=True),
        ),
        expects=(
            expect(has_answer, "whole"),
            expect(has_answer),
            expect(streamed_function_is_called, "whole", "it", name="pick_colour"),
        ),
    ),
)
