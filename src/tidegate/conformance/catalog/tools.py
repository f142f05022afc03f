"""Calls of tools in whole answers: whether, which, and how they look."""

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity, expect, expect_over
from tidegate.conformance.catalog.scripts import plays, plays_calls
from tidegate.conformance.catalog.tool_bodies import (
    BLUE,
    COLOUR,
    RED,
    SEVEN,
    SIZE,
    named,
    tool_body,
)
from tidegate.conformance.checks.taken_answer import has_answer
from tidegate.conformance.checks.tool_calls import (
    answer_is_consistent,
    arguments_are_json,
    calls_are_at_most,
    calls_are_made,
    calls_are_of,
    calls_end_with,
    calls_have_shape,
    content_holds_no_call,
    cut_is_honest,
    ids_differ,
    ids_differ_over_answers,
    ids_have_form,
    nothing_is_called,
)
from tidegate.conformance.probing.capability import Capability

_FORCED = (Capability.FORCED_TOOLS,)
_NAMES = ("pick_colour", "set_size")
_CUT_AT = 8

CASES: tuple[Case, ...] = (
    Case(
        id="tools.required_calls",
        title="tool_choice `required` gives at least one call, of an offered tool",
        why="An agent that must act gets prose instead, and stops.",
        clauses=("openai:tools.choice_required",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_FORCED,
        asks=(Ask(body=tool_body(COLOUR, SIZE, tool_choice="required"), script=plays_calls(RED)),),
        expects=(expect(has_answer), expect(calls_are_made, names=_NAMES)),
    ),
    Case(
        id="tools.call_shape",
        title="A call has id, type, name, and arguments as a string; content is null or text",
        why="Typed clients fail on a call without an id, or with arguments as an object.",
        clauses=("openai:tools.call_shape",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_FORCED,
        asks=(Ask(body=tool_body(tool_choice="required"), script=plays_calls(RED)),),
        expects=(expect(has_answer), expect(calls_have_shape)),
    ),
    Case(
        id="tools.auto_finish",
        title="An answer that calls a tool by the model's own choice ends with `tool_calls`, no other does",
        why="Agents decide by finish_reason whether to run tools or to show the text.",
        clauses=("openai:tools.finish_reason",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.TOOLS,),
        asks=(Ask(body=tool_body(max_tokens=48), script=plays_calls(RED, before="One moment.", piece_chars=8)),),
        expects=(expect(has_answer), expect(answer_is_consistent), expect(calls_are_of, names=_NAMES)),
    ),
    Case(
        id="tools.auto_text",
        title="With tools offered, an answer without a call is an ordinary one",
        why="A finish_reason of `tool_calls` without calls makes agents index into nothing.",
        clauses=("openai:tools.finish_reason",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.TOOLS,),
        asks=(
            Ask(body=tool_body(text="Say hello.", tool_choice="auto", max_tokens=32), script=plays("Hello to you.")),
        ),
        expects=(expect(has_answer), expect(answer_is_consistent)),
    ),
    Case(
        id="tools.forced_finish",
        title="An answer that had to call a tool ends with `tool_calls` or `stop`",
        why="Other reasons are not in the enumeration, or read as truncation.",
        clauses=("openai:tools.finish_reason",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_FORCED,
        asks=(Ask(body=tool_body(tool_choice="required"), script=plays_calls(RED)),),
        expects=(expect(has_answer), expect(calls_end_with, allowed=("tool_calls", "stop"))),
    ),
    Case(
        id="tools.required_finish",
        title="An answer under `required` ends with `tool_calls`",
        why="The contract says so, and clients of it rely on one word.",
        clauses=("tidegate:finish.tool_calls",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_FORCED,
        asks=(Ask(body=tool_body(tool_choice="required", parallel_tool_calls=False), script=plays_calls(RED)),),
        expects=(expect(has_answer), expect(calls_end_with, allowed=("tool_calls",))),
    ),
    Case(
        id="tools.named_is_called",
        title="A tool_choice that names a function gives a call of that function",
        why="A router that forces a step gets another one.",
        clauses=("openai:tools.choice_named",),
        severity=Severity.WRONG_DATA,
        needs=_FORCED,
        asks=(Ask(body=tool_body(COLOUR, SIZE, tool_choice=named("set_size")), script=plays_calls(SEVEN)),),
        expects=(
            expect(has_answer),
            expect(calls_are_made, names=("set_size",)),
            expect(calls_end_with, allowed=("tool_calls", "stop")),
        ),
    ),
    Case(
        id="tools.named_stops",
        title="A named function is called once, and the answer ends with `stop`",
        why="The contract says so, as the public API does it.",
        clauses=("tidegate:finish.tool_calls", "tidegate:tools.named_once"),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_FORCED,
        asks=(Ask(body=tool_body(COLOUR, SIZE, tool_choice=named("pick_colour")), script=plays_calls(RED, BLUE)),),
        expects=(
            expect(has_answer),
            expect(calls_are_made, names=("pick_colour",)),
            expect(calls_are_at_most, most=1),
            expect(calls_end_with, allowed=("stop",)),
        ),
    ),
    Case(
        id="tools.none_calls_nothing",
        title="tool_choice `none` gives no call, whatever the model writes",
        why="A client that asked for text runs a tool.",
        clauses=("openai:tools.choice_none",),
        severity=Severity.WRONG_DATA,
        needs=(Capability.TOOLS,),
        asks=(
            Ask(
                body=tool_body(tool_choice="none", text="Call pick_colour now.", max_tokens=48),
                script=plays_calls(RED, before="Well. "),
            ),
        ),
        expects=(expect(has_answer), expect(nothing_is_called)),
    ),
    Case(
        id="tools.allowed_tools",
        title="Of tools that tool_choice `allowed_tools` leaves out, none is called",
        why="An agent that may only read is made to write.",
        clauses=("openai:tools.choice_allowed",),
        severity=Severity.WRONG_DATA,
        needs=_FORCED,
        asks=(
            Ask(
                body=tool_body(
                    COLOUR,
                    SIZE,
                    tool_choice={
                        "type": "allowed_tools",
                        "allowed_tools": {"mode": "required", "tools": [named("set_size")]},
                    },
                ),
                script=plays_calls(SEVEN),
                is_refusable=True,
            ),
        ),
        expects=(expect(has_answer), expect(calls_are_made, names=("set_size",))),
    ),
    Case(
        id="tools.one_call_at_a_time",
        title="parallel_tool_calls `false` gives one call at most",
        why="A client that runs one tool at a time loses the others, and their results are missing in the next turn.",
        clauses=("openai:tools.parallel",),
        severity=Severity.WRONG_DATA,
        needs=_FORCED,
        asks=(
            Ask(
                body=tool_body(
                    COLOUR, SIZE, text="Pick red, then set the size.", tool_choice="required", parallel_tool_calls=False
                ),
                script=plays_calls(RED, SEVEN),
                is_refusable=True,
            ),
        ),
        expects=(expect(has_answer), expect(calls_are_at_most, most=1)),
    ),
    Case(
        id="tools.ids_differ",
        title="Two calls of one answer have two ids",
        why="Results are matched to calls by id; with one id for two, the model reads them mixed up.",
        clauses=("openai:tools.call_shape",),
        severity=Severity.WRONG_DATA,
        needs=_FORCED,
        tries=2,
        asks=(
            Ask(
                body=tool_body(COLOUR, SIZE, text="Pick red and set size 7.", tool_choice="required", max_tokens=200),
                script=plays_calls(RED, SEVEN),
            ),
        ),
        expects=(expect(has_answer), expect(ids_differ)),
    ),
    Case(
        id="tools.ids_differ_over_answers",
        title="Calls of different answers have different ids",
        why="In a conversation of several turns one id would name two calls.",
        clauses=("tidegate:tools.ids",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=_FORCED,
        asks=(Ask(body=tool_body(tool_choice=named("pick_colour")), script=plays_calls(RED), copies=3),),
        expects=(
            expect(has_answer),
            expect_over(ids_differ_over_answers, "it"),
            expect(ids_have_form, pattern="call_[A-Za-z0-9]{24}"),
        ),
    ),
    Case(
        id="tools.content_holds_no_call",
        title="A call is not told a second time as text, and its markup stays out of the content",
        why="Users see raw markup, and clients that read text run the call twice.",
        clauses=("openai:tools.apart_from_content",),
        severity=Severity.WRONG_DATA,
        needs=_FORCED,
        asks=(
            Ask(body=tool_body(tool_choice="required"), script=plays_calls(RED, before="I pick one.", piece_chars=1)),
        ),
        expects=(expect(has_answer), expect(content_holds_no_call)),
    ),
    Case(
        id="tools.cut_says_length",
        title="An answer cut inside a call ends with `length`, never `tool_calls`",
        why="A client runs half a call: with a path cut short, or an amount.",
        clauses=("openai:finish.length",),
        severity=Severity.WRONG_DATA,
        needs=_FORCED,
        asks=(
            Ask(
                body=tool_body(tool_choice="required", max_tokens=_CUT_AT),
                script=plays_calls(
                    ("pick_colour", '{"colour": "red", "why": "because it is a warm one"}'), piece_chars=8
                ),
            ),
        ),
        expects=(expect(has_answer), expect(cut_is_honest, budget=_CUT_AT)),
    ),
    Case(
        id="tools.unknown_is_not_called",
        title="A tool that was not offered is never called",
        why="A client looks up a function that it does not have.",
        clauses=("openai:tools.only_offered",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.TOOLS,),
        asks=(
            Ask(
                body=tool_body(text="Call the tool open_door with no arguments.", max_tokens=48),
                script=plays_calls(("open_door", '{"wide": true}')),
            ),
        ),
        expects=(expect(has_answer), expect(calls_are_of, names=("pick_colour",))),
    ),
    Case(
        id="tools.json_arguments",
        title="Arguments of a call that had to be made are a JSON object",
        why="The first thing that a client does with arguments is to parse them.",
        clauses=("tidegate:tools.enforced",),
        severity=Severity.BREAKS_CLIENTS,
        profile=Profile.TIDEGATE,
        needs=_FORCED,
        asks=(Ask(body=tool_body(tool_choice=named("pick_colour")), script=plays_calls(RED)),),
        expects=(expect(has_answer), expect(arguments_are_json, schema=COLOUR["function"]["parameters"])),
    ),
)
