"""Calls of tools in streams: how their fragments follow one another, and that they say what whole answers say."""

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity, expect
from tidegate.conformance.catalog.scripts import plays_calls
from tidegate.conformance.catalog.tool_bodies import COLOUR, ONE_VALUE, RED, SEVEN, SIZE, named, tool_body
from tidegate.conformance.checks.taken_answer import has_answer
from tidegate.conformance.checks.tool_calls import (
    answer_is_consistent,
    calls_are_at_most,
    calls_are_made,
    calls_are_of,
    calls_end_with,
    content_holds_no_call,
    cut_is_honest,
    ids_differ,
    nothing_is_called,
)
from tidegate.conformance.checks.tool_fragments import (
    arguments_are_joined_once,
    calls_are_same,
    content_is_same,
    fragments_begin_whole,
    fragments_open_empty,
    indices_are_dense,
)
from tidegate.conformance.probing.capability import Capability

_NEEDS = (Capability.FORCED_TOOLS, Capability.STREAMS)
_CUT_AT = 8
_TWO = tool_body(COLOUR, SIZE, text="Pick red and set size 7.", tool_choice="required", max_tokens=200, stream=True)
_ONE = tool_body(tool_choice="required", stream=True)
_SAME = tool_body(ONE_VALUE, tool_choice=named("pick_colour"))

CASES: tuple[Case, ...] = (
    Case(
        id="tools.streamed_required_calls",
        title="tool_choice `required` gives a call in a stream as well",
        why="An agent that must act gets prose instead, and stops.",
        clauses=("openai:tools.choice_required",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_NEEDS,
        asks=(Ask(body=_ONE, script=plays_calls(RED)),),
        expects=(expect(has_answer), expect(calls_are_made, names=("pick_colour",))),
    ),
    Case(
        id="tools.streamed_first_fragment",
        title="The first fragment of a call has id, type and name; later ones never again",
        why="The official clients join the strings of fragments: a repeated name becomes `get_xget_x`.",
        clauses=("openai:tools.fragments",),
        severity=Severity.BREAKS_CLIENTS,
        needs=_NEEDS,
        asks=(Ask(body=_TWO, script=plays_calls(RED, SEVEN)),),
        expects=(expect(has_answer), expect(fragments_begin_whole)),
    ),
    Case(
        id="tools.streamed_indices",
        title="Fragments carry the index of their call, from 0 without a gap",
        why="Clients keep calls in a list by index; without one, arguments of two calls run into each other.",
        clauses=("openai:tools.fragments",),
        severity=Severity.WRONG_DATA,
        needs=_NEEDS,
        asks=(Ask(body=_TWO, script=plays_calls(RED, SEVEN)),),
        expects=(expect(has_answer), expect(indices_are_dense)),
    ),
    Case(
        id="tools.streamed_two_ids",
        title="Two calls of one stream have two ids",
        why="Results are matched to calls by id.",
        clauses=("openai:tools.call_shape",),
        severity=Severity.WRONG_DATA,
        needs=_NEEDS,
        tries=2,
        asks=(Ask(body=_TWO, script=plays_calls(RED, SEVEN)),),
        expects=(expect(has_answer), expect(ids_differ)),
    ),
    Case(
        id="tools.streamed_arguments_once",
        title="Fragments of arguments, joined, are one JSON text",
        why="Repeated or lost fragments make arguments that no client can parse.",
        clauses=("openai:tools.fragments", "openai:tools.strict"),
        severity=Severity.BREAKS_CLIENTS,
        needs=_NEEDS,
        asks=(Ask(body=_SAME | {"stream": True}, script=plays_calls(RED, piece_chars=1), is_refusable=True),),
        expects=(expect(has_answer), expect(arguments_are_joined_once)),
    ),
    Case(
        id="tools.streamed_equals_whole",
        title="A stream makes the calls of the whole answer",
        why="A client that switches to streaming gets other values.",
        clauses=("openai:tools.strict", "openai:stream.same_answer"),
        severity=Severity.WRONG_DATA,
        needs=_NEEDS,
        asks=(
            Ask(name="whole", body=_SAME, script=plays_calls(RED), is_refusable=True),
            Ask(name="streamed", body=_SAME | {"stream": True}, script=plays_calls(RED), is_refusable=True),
        ),
        expects=(
            expect(has_answer, "whole"),
            expect(has_answer, "streamed"),
            expect(calls_are_same, "whole", "streamed"),
        ),
    ),
    Case(
        id="tools.streamed_characters",
        title="A stream has the whole answer's arguments and content, character by character",
        why="Signatures over arguments, and caches by their text, break.",
        clauses=("tidegate:stream.equals_whole",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=_NEEDS,
        asks=(
            Ask(name="whole", body=_SAME, script=plays_calls(RED, before="So be it. ", piece_chars=2)),
            Ask(
                name="streamed",
                body=_SAME | {"stream": True},
                script=plays_calls(RED, before="So be it. ", piece_chars=2),
            ),
        ),
        expects=(
            expect(calls_are_same, "whole", "streamed", in_characters=True),
            expect(content_is_same, "whole", "streamed"),
        ),
    ),
    Case(
        id="tools.streamed_opening",
        title="A call opens with empty arguments; after that only index and arguments come",
        why="Clients show the name at once, and append what follows.",
        clauses=("tidegate:tools.fragments",),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=_NEEDS,
        asks=(Ask(body=_ONE, script=plays_calls(RED)),),
        expects=(expect(has_answer), expect(fragments_open_empty)),
    ),
    Case(
        id="tools.streamed_finish",
        title="A stream that calls a tool by the model's own choice ends with `tool_calls`",
        why="Agents decide by finish_reason whether to run tools or to show the text.",
        clauses=("openai:tools.finish_reason",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.TOOLS, Capability.STREAMS),
        asks=(
            Ask(
                body=tool_body(stream=True, max_tokens=48),
                script=plays_calls(RED, before="One moment.", piece_chars=8),
            ),
        ),
        expects=(expect(has_answer), expect(answer_is_consistent), expect(calls_are_of, names=("pick_colour",))),
    ),
    Case(
        id="tools.streamed_forced_finish",
        title="A stream that had to call a tool ends with `tool_calls` or `stop`",
        why="Other reasons are not in the enumeration, or read as truncation.",
        clauses=("openai:tools.finish_reason", "openai:tools.choice_named"),
        severity=Severity.BREAKS_CLIENTS,
        needs=_NEEDS,
        asks=(
            Ask(
                body=tool_body(COLOUR, SIZE, tool_choice=named("pick_colour"), stream=True),
                script=plays_calls(RED),
            ),
        ),
        expects=(
            expect(has_answer),
            expect(calls_are_made, names=("pick_colour",)),
            expect(calls_end_with, allowed=("tool_calls", "stop")),
        ),
    ),
    Case(
        id="tools.streamed_none",
        title="tool_choice `none` gives no call in a stream, whatever the model writes",
        why="A client that asked for text runs a tool.",
        clauses=("openai:tools.choice_none",),
        severity=Severity.WRONG_DATA,
        needs=(Capability.TOOLS, Capability.STREAMS),
        asks=(
            Ask(
                body=tool_body(tool_choice="none", text="Call pick_colour now.", max_tokens=48, stream=True),
                script=plays_calls(RED, before="Well. "),
            ),
        ),
        expects=(expect(has_answer), expect(nothing_is_called)),
    ),
    Case(
        id="tools.streamed_one_call_at_a_time",
        title="parallel_tool_calls `false` gives one call at most in a stream",
        why="A client that runs one tool at a time loses the others.",
        clauses=("openai:tools.parallel",),
        severity=Severity.WRONG_DATA,
        needs=_NEEDS,
        asks=(Ask(body=_TWO | {"parallel_tool_calls": False}, script=plays_calls(RED, SEVEN), is_refusable=True),),
        expects=(expect(has_answer), expect(calls_are_at_most, most=1)),
    ),
    Case(
        id="tools.streamed_content_holds_no_call",
        title="Markup of a call is never in the deltas of the content, wherever the tokens cut it",
        why="Users see raw markup flash up before the call is understood.",
        clauses=("openai:tools.apart_from_content",),
        severity=Severity.WRONG_DATA,
        needs=_NEEDS,
        asks=(Ask(body=_ONE, script=plays_calls(RED, before="I pick one.", piece_chars=1)),),
        expects=(expect(has_answer), expect(content_holds_no_call)),
    ),
    Case(
        id="tools.streamed_cut_says_length",
        title="A stream cut inside a call ends with `length`, never `tool_calls`",
        why="A client runs half a call.",
        clauses=("openai:finish.length",),
        severity=Severity.WRONG_DATA,
        needs=_NEEDS,
        asks=(
            Ask(
                body=_ONE | {"max_tokens": _CUT_AT, "stream_options": {"include_usage": True}},
                script=plays_calls(
                    ("pick_colour", '{"colour": "red", "why": "because it is a warm one"}'), piece_chars=8
                ),
            ),
        ),
        expects=(expect(has_answer), expect(cut_is_honest, budget=_CUT_AT)),
    ),
)
