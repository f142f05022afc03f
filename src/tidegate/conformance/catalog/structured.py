"""Structured output: enforced, or refused in words; never weaker than asked."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body
from tidegate.conformance.catalog.schemas import ROWS, STREAMED, SchemaRow, row_of
from tidegate.conformance.catalog.scripts import plays
from tidegate.conformance.catalog.tool_bodies import closed
from tidegate.conformance.checks.constrained_text import is_cut_json, is_json_object, keeps_schema, whole_json_stops
from tidegate.conformance.checks.taken_answer import has_answer
from tidegate.conformance.checks.tool_fragments import content_is_same
from tidegate.conformance.probing.capability import Capability

_BUDGET = 200
_CUT_AT = 8
_SCHEMA = (Capability.JSON_SCHEMA,)
_OBJECT = (Capability.JSON_OBJECT,)
_LONG = closed(t={"type": "string", "minLength": 60, "maxLength": 80})
_ONE_VALUE = closed(colour={"type": "string", "enum": ["teal"]}, ok={"const": True, "type": "boolean"})
_ASKS_FOR_JSON = "Describe a cat as a JSON object with one member."


def schema_format(schema: Any, **members: Any) -> dict[str, Any]:
    """Returns a `response_format` of the schema, strict unless `members` say otherwise."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True, **members}}


def _body(schema: Any, text: str = "Answer in prose, without JSON.", **fields: Any) -> dict[str, Any]:
    return chat_body(text, **{"response_format": schema_format(schema), "max_tokens": _BUDGET, **fields})


def _row_case(row: SchemaRow, *, is_streamed: bool) -> Case:
    fields = {"stream": True} if is_streamed else {}
    return Case(
        id=f"structured.{'streamed' if is_streamed else 'schema'}_{row.name}",
        title=f"A strict schema is kept or refused{' in a stream' if is_streamed else ''}: {row.what}",
        why="A program reads the answer with code made from the schema: it fails, or stores what must not be.",
        clauses=("openai:response_format.schema", *(("openai:response_format.streamed",) if is_streamed else ())),
        severity=Severity.WRONG_DATA,
        needs=(*_SCHEMA, *((Capability.STREAMS,) if is_streamed else ())),
        asks=(Ask(body=_body(row.schema, row.lure, **fields), script=plays(row.right), is_refusable=True),),
        expects=(expect(has_answer), expect(keeps_schema, schema=row.schema)),
    )


def _object_case(name: str, title: str, **fields: Any) -> Case:
    return Case(
        id=f"structured.{name}",
        title=title,
        why="The first thing that a client does is to parse it.",
        clauses=("openai:response_format.json_object",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(*_OBJECT, *((Capability.STREAMS,) if fields else ())),
        tries=2,
        asks=(
            Ask(
                body=chat_body(_ASKS_FOR_JSON, response_format={"type": "json_object"}, max_tokens=_BUDGET, **fields),
                script=plays('{"name": "Tom", "legs": 4}'),
                is_refusable=True,
            ),
        ),
        expects=(expect(has_answer), expect(is_json_object)),
    )


def _weak_case(name: str, title: str, schema: Any, **members: Any) -> Case:
    """The schema is enforced also where the public API would only try."""
    body = _body(schema, response_format=schema_format(schema, **members))
    return Case(
        id=f"structured.{name}",
        title=title,
        why="The caller cannot see that a schema was a mere wish.",
        clauses=("tidegate:structured.enforced",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=_SCHEMA,
        asks=(Ask(body=body, script=plays(row_of("enum").right)),),
        expects=(expect(has_answer), expect(keeps_schema, schema=schema)),
    )


CASES: tuple[Case, ...] = (
    _object_case("json_object", "json_object gives a JSON object"),
    _object_case("streamed_json_object", "json_object gives a JSON object in a stream", stream=True),
    *(_row_case(row, is_streamed=False) for row in ROWS),
    *(_row_case(row_of(name), is_streamed=True) for name in STREAMED),
    _weak_case("strict_false", "A schema with `strict: false` is enforced", row_of("enum").schema, strict=False),
    _weak_case("strict_null", "A schema with a null for `strict` is enforced", row_of("enum").schema, strict=None),
    Case(
        id="structured.finish_stop",
        title="A whole JSON value ends the answer, with `stop`",
        why="`length` makes clients throw a good answer away; what follows the value makes it unreadable.",
        clauses=("openai:response_format.schema", "openai:finish.length", "tidegate:finish.grammar"),
        severity=Severity.BREAKS_CLIENTS,
        needs=_SCHEMA,
        asks=(Ask(body=_body(_ONE_VALUE), script=plays('{"colour": "teal", "ok": true}'), is_refusable=True),),
        expects=(expect(has_answer), expect(whole_json_stops)),
    ),
    Case(
        id="structured.cut_is_beginning",
        title="An answer cut by the budget ends with `length`, and is the beginning of JSON",
        why="`stop` makes clients read half a value; closing it by force makes it look whole.",
        clauses=("openai:finish.length", "openai:response_format.schema", "openai:json.standard"),
        severity=Severity.WRONG_DATA,
        needs=_SCHEMA,
        asks=(
            Ask(
                body=_body(_LONG, max_tokens=_CUT_AT),
                script=plays('{"t": "a text of sixty characters and some more than that, as asked for"}'),
                is_refusable=True,
            ),
        ),
        expects=(expect(has_answer), expect(is_cut_json)),
    ),
    Case(
        id="structured.streamed_equals_whole",
        title="A stream under a schema that allows one value is the whole answer's text",
        why="Text lost at the border of a delta is a comma or a quote: nothing parses.",
        clauses=("openai:response_format.schema", "openai:stream.same_answer"),
        severity=Severity.BREAKS_CLIENTS,
        profile=Profile.TIDEGATE,
        needs=(*_SCHEMA, Capability.STREAMS),
        asks=(
            Ask(name="whole", body=_body(_ONE_VALUE), script=plays('{"colour": "teal", "ok": true}')),
            Ask(name="streamed", body=_body(_ONE_VALUE, stream=True), script=plays('{"colour": "teal", "ok": true}')),
        ),
        expects=(
            expect(has_answer, "whole"),
            expect(has_answer, "streamed"),
            expect(content_is_same, "whole", "streamed"),
        ),
    ),
    Case(
        id="structured.every_choice",
        title="Each of several choices keeps the schema",
        why="The second choice is read by the same code as the first.",
        clauses=("openai:response_format.schema",),
        severity=Severity.WRONG_DATA,
        needs=(*_SCHEMA, Capability.CHOICES),
        asks=(
            Ask(
                body=_body(row_of("enum").schema, n=2, temperature=1),
                script={"choices": [plays('{"colour": "teal"}'), plays('{"colour": "ochre"}')]},
                is_refusable=True,
            ),
        ),
        expects=(expect(has_answer), expect(keeps_schema, schema=row_of("enum").schema)),
    ),
    Case(
        id="structured.hot",
        title="The schema is kept at a high temperature",
        why="A constraint that is a hint in the prompt holds only while the model is sure of itself.",
        clauses=("openai:response_format.schema",),
        severity=Severity.WRONG_DATA,
        needs=_SCHEMA,
        asks=(
            Ask(
                body=_body(row_of("types").schema, temperature=1.9),
                script=plays(row_of("types").right),
                copies=3,
                is_refusable=True,
            ),
        ),
        expects=(expect(has_answer), expect(keeps_schema, schema=row_of("types").schema)),
    ),
    Case(
        id="structured.text_format",
        title="response_format `text` is accepted",
        why="It is the default, and clients send it.",
        clauses=("openai:response_format.shape",),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.CHAT,),
        asks=(Ask(body=chat_body(response_format={"type": "text"}, max_tokens=8)),),
        expects=(expect(has_answer),),
    ),
)
