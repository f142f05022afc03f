"""Reasoning: apart from the answer, before it, and paid for."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body
from tidegate.conformance.catalog.scripts import plays, plays_reasoning
from tidegate.conformance.catalog.structured import schema_format
from tidegate.conformance.catalog.tool_bodies import COLOUR, closed
from tidegate.conformance.checks.constrained_text import keeps_schema
from tidegate.conformance.checks.reasoning import (
    reasoning_comes_first,
    reasoning_is_apart,
    reasoning_is_counted,
    reasoning_is_same,
    reasons_and_answers,
)
from tidegate.conformance.checks.taken_answer import has_answer
from tidegate.conformance.probing.capability import Capability

_QUESTION = "Which is larger, 9.11 or 9.9?"
_NEEDS = (Capability.REASONING,)
_SCRIPTED = (Capability.REASONING, Capability.SCRIPT)
_STREAMED = (Capability.REASONING, Capability.STREAMS)
_PLAYED = plays_reasoning("Compare 90 and 11: the first.", "\n\n9.9 is larger.")
_SCHEMA = closed(larger={"type": "string", "enum": ["9.11", "9.9"]})
_CALL = '<tool_call>\n{"name": "pick_colour", "arguments": {"colour": "red"}}\n</tool_call>'


def _body(**fields: Any) -> dict[str, Any]:
    return chat_body(_QUESTION, **{"max_tokens": 200, **fields})


def _exact(name: str, title: str, clause: str, script: Any, args: dict[str, str], **fields: Any) -> Case:
    """What only a script can show: the model must write exactly this."""
    return Case(
        id=f"reasoning.{name}",
        title=title,
        why="Text moves between what users see and what they do not, with every odd answer.",
        clauses=(f"tidegate:reasoning.{clause}",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=_SCRIPTED,
        asks=(Ask(body=_body(**fields), script=script),),
        expects=(expect(has_answer), expect(reasons_and_answers, **{"finish": "stop", **args})),
    )


CASES: tuple[Case, ...] = (
    Case(
        id="reasoning.apart",
        title="Where reasoning is told apart, the content holds nothing of it, and no markers",
        why="Users read the model's notes, and the next turn sends them back.",
        clauses=("openai:reasoning.apart",),
        severity=Severity.WRONG_DATA,
        needs=_NEEDS,
        asks=(Ask(body=_body(), script=_PLAYED),),
        expects=(expect(has_answer), expect(reasoning_is_apart)),
    ),
    Case(
        id="reasoning.streamed_apart",
        title="No delta of the content holds reasoning or a marker, wherever the tokens cut it",
        why="Markers flash up before they are understood.",
        clauses=("openai:reasoning.apart",),
        severity=Severity.WRONG_DATA,
        needs=_STREAMED,
        asks=(
            Ask(
                body=_body(stream=True),
                script=plays_reasoning("Compare 90 and 11.", "9.9 is larger.", piece_chars=1),
            ),
        ),
        expects=(expect(has_answer), expect(reasoning_is_apart)),
    ),
    Case(
        id="reasoning.streamed_first",
        title="In a stream reasoning comes before the content, and never after it",
        why="Clients close the part that shows reasoning when the answer begins.",
        clauses=("openai:reasoning.apart",),
        severity=Severity.NUISANCE,
        needs=_STREAMED,
        asks=(Ask(body=_body(stream=True), script=_PLAYED),),
        expects=(expect(has_answer), expect(reasoning_comes_first)),
    ),
    Case(
        id="reasoning.counted",
        title="Tokens of reasoning are counted in usage, apart and within completion_tokens",
        why="Most of the bill of such a model is reasoning.",
        clauses=("openai:reasoning.usage",),
        severity=Severity.WRONG_BILL,
        needs=_NEEDS,
        asks=(Ask(body=_body(), script=_PLAYED),),
        expects=(expect(has_answer), expect(reasoning_is_counted)),
    ),
    Case(
        id="reasoning.streamed_counted",
        title="Tokens of reasoning are counted in the usage of streams",
        why="Most of the bill of such a model is reasoning.",
        clauses=("openai:reasoning.usage",),
        severity=Severity.WRONG_BILL,
        needs=(*_STREAMED, Capability.STREAM_USAGE),
        asks=(Ask(body=_body(stream=True, stream_options={"include_usage": True}), script=_PLAYED),),
        expects=(expect(has_answer), expect(reasoning_is_counted)),
    ),
    Case(
        id="reasoning.streamed_equals_whole",
        title="A stream has the whole answer's reasoning and content",
        why="A client that switches to streaming shows other text.",
        clauses=("tidegate:stream.equals_whole",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=_STREAMED,
        asks=(
            Ask(name="whole", body=_body(), script=_PLAYED),
            Ask(name="streamed", body=_body(stream=True), script=_PLAYED),
        ),
        expects=(expect(reasoning_is_same, "whole", "streamed"),),
    ),
    Case(
        id="reasoning.history",
        title="An earlier answer is accepted with its reasoning",
        why="Clients send messages back as they came.",
        clauses=("tidegate:reasoning.field",),
        severity=Severity.BREAKS_CLIENTS,
        profile=Profile.TIDEGATE,
        needs=_NEEDS,
        asks=(
            Ask(
                body=_body(max_tokens=16)
                | {
                    "messages": [
                        {"role": "user", "content": _QUESTION},
                        {"role": "assistant", "content": "9.9.", "reasoning_content": "Compare 90 and 11."},
                        {"role": "user", "content": "Are you sure?"},
                    ]
                },
                script=plays("Yes."),
            ),
        ),
        expects=(expect(has_answer),),
    ),
    Case(
        id="reasoning.schema_after",
        title="A schema holds for the answer, and not for the reasoning before it",
        why="Models that may not reason answer worse, and reasoning in the content is no JSON.",
        clauses=("openai:response_format.schema", "openai:reasoning.apart"),
        severity=Severity.WRONG_DATA,
        needs=(*_NEEDS, Capability.JSON_SCHEMA),
        asks=(
            Ask(
                body=_body(response_format=schema_format(_SCHEMA), max_tokens=400),
                script=plays_reasoning("Compare.", '{"larger": "9.9"}'),
                is_refusable=True,
            ),
        ),
        expects=(expect(has_answer), expect(keeps_schema, schema=_SCHEMA)),
    ),
    _exact(
        "first_marker_ends",
        "The first closing marker ends reasoning, and later ones are text",
        "ends",
        plays_reasoning("One ", "two</think>three."),
        {"reasoning": "One ", "text": "two</think>three."},
    ),
    _exact(
        "line_breaks",
        "Line breaks right after the closing marker are dropped",
        "ends",
        plays_reasoning("One.", "\n\nTwo.\n"),
        {"reasoning": "One.", "text": "Two.\n"},
    ),
    _exact(
        "unclosed",
        "Reasoning that is never closed is all reasoning",
        "ends",
        plays("<think>One and two", parsers={"reasoning": "qwen3"}),
        {"reasoning": "One and two", "text": ""},
    ),
    _exact(
        "cut",
        "A budget that ends inside reasoning gives `length`, and no content",
        "ends",
        plays_reasoning("0123456789", "Never.", piece_chars=1),
        {"reasoning": "0123", "text": "", "finish": "length"},
        max_tokens=len("<think>0123"),
    ),
    _exact(
        "no_calls_inside",
        "Markup of a call inside reasoning is not a call",
        "no_calls",
        plays(f"<think>Perhaps {_CALL} it is.</think>No.", parsers={"reasoning": "qwen3", "tool": "hermes"}),
        {"reasoning": f"Perhaps {_CALL} it is.", "text": "No."},
        tools=[COLOUR],
    ),
    _exact(
        "stop_is_for_content",
        "A stop string inside reasoning ends nothing",
        "ends",
        plays_reasoning("One STOP two.", "Three STOP four."),
        {"reasoning": "One STOP two.", "text": "Three "},
        stop=["STOP"],
    ),
)
