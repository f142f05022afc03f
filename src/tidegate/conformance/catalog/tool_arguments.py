"""Arguments of strict tools: enforced, and of the types that the schema says."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Severity, expect
from tidegate.conformance.catalog.scripts import plays_calls
from tidegate.conformance.catalog.tool_bodies import closed, function_tool, named, tool_body
from tidegate.conformance.checks.taken_answer import has_answer
from tidegate.conformance.checks.tool_calls import arguments_are_json, calls_are_made
from tidegate.conformance.probing.capability import Capability

_KINDS: tuple[tuple[str, str, str, Any, str], ...] = (
    (
        "enum",
        "an enumeration",
        "A client gets a word that its code has no branch for.",
        closed(colour={"type": "string", "enum": ["ochre", "teal"]}),
        '{"colour": "teal"}',
    ),
    (
        "digits",
        "a string of digits stays a string, with its zeros",
        "A postal code loses its first zero, a key its type.",
        closed(code={"type": "string", "enum": ["03106"]}),
        '{"code": "03106"}',
    ),
    (
        "number",
        "a number stays a number",
        "Typed clients refuse a number that came as text.",
        closed(count={"type": "integer", "enum": [42]}),
        '{"count": 42}',
    ),
    (
        "truth",
        "true and false stay truth values",
        'The text "false" is true in most languages.',
        closed(is_open={"type": "boolean"}),
        '{"is_open": false}',
    ),
    (
        "null",
        "null stays null",
        'The text "null" is a name, and not nothing.',
        closed(port={"type": "null"}),
        '{"port": null}',
    ),
    (
        "nested",
        "objects and lists in objects",
        "Servers that flatten arguments lose what belongs to what.",
        closed(
            at=closed(row={"type": "integer", "enum": [3]}),
            tags={"type": "array", "items": {"enum": ["a"]}, "minItems": 1, "maxItems": 2},
        ),
        '{"at": {"row": 3}, "tags": ["a"]}',
    ),
    (
        "unicode",
        "characters of any script, quotes and backslashes",
        "Names of people and files arrive broken.",
        closed(place={"type": "string", "enum": ['Zürich 東京 \U0001f30a "q" \\ end']}),
        '{"place": "Zürich 東京 \U0001f30a \\"q\\" \\\\ end"}',
    ),
    (
        "empty",
        "a tool without parameters gets an empty object",
        "Clients that parse arguments fail on an empty string.",
        closed(),
        "{}",
    ),
)


def _case(name: str, what: str, why: str, schema: Any, right: str) -> Case:
    return Case(
        id=f"tools.strict_{name}",
        title=f"Arguments of a strict tool keep its schema: {what}",
        why=why,
        clauses=("openai:tools.choice_named", "openai:tools.strict"),
        severity=Severity.WRONG_DATA,
        needs=(Capability.FORCED_TOOLS,),
        asks=(
            Ask(
                body=tool_body(
                    function_tool("note", schema, strict=True),
                    text="Note something of your own choice, in prose.",
                    tool_choice=named("note"),
                ),
                script=plays_calls(("note", right)),
                is_refusable=True,
            ),
        ),
        expects=(
            expect(has_answer),
            expect(calls_are_made, names=("note",)),
            expect(arguments_are_json, schema=schema),
        ),
    )


CASES: tuple[Case, ...] = tuple(_case(*kind) for kind in _KINDS)
