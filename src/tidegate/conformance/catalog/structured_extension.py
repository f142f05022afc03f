"""The extension `structured_outputs`: texts by pattern, choice, grammar, tag and schema."""

import json
from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Check, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body, completion_body
from tidegate.conformance.catalog.schemas import row_of
from tidegate.conformance.catalog.scripts import plays
from tidegate.conformance.checks.constrained_text import keeps_schema, tags_keep_schema, text_is_among, text_matches
from tidegate.conformance.checks.taken_answer import has_answer
from tidegate.conformance.probing.capability import Capability

_PATTERN = "[A-F]{2}-[0-9]{3}"
_CHOICES = ("blue-grey", "bluish", "green")
_LARK = 'start: NUMBER (" + " NUMBER)~1..2\nNUMBER: /[0-9]{1,2}/'
_SUM = r"[0-9]{1,2}( \+ [0-9]{1,2}){1,2}"
_ENUM = row_of("enum")
_TAG: dict[str, Any] = {
    "type": "structural_tag",
    "triggers": ["<n"],
    "structures": [{"begin": "<n>", "schema": {"type": "integer", "minimum": 0, "maximum": 9}, "end": "</n>"}],
}
_ENUM_TEXT = json.dumps(_ENUM.schema)

_ROWS: tuple[tuple[str, str, dict[str, Any], str, Check, dict[str, Any]], ...] = (
    ("regex", "a regular expression", {"regex": _PATTERN}, "BF-204", text_matches, {"pattern": _PATTERN}),
    ("choice", "one of several texts", {"choice": list(_CHOICES)}, "bluish", text_is_among, {"texts": _CHOICES}),
    ("grammar", "a Lark grammar", {"grammar": _LARK}, "12 + 3", text_matches, {"pattern": _SUM}),
    ("json", "a schema", {"json": _ENUM.schema}, _ENUM.right, keeps_schema, {"schema": _ENUM.schema}),
    ("json_text", "a schema as text", {"json": _ENUM_TEXT}, _ENUM.right, keeps_schema, {"schema": _ENUM.schema}),
    (
        "tag",
        "tags in free text",
        {"structural_tag": _TAG},
        "So it is <n>7</n>.",
        tags_keep_schema,
        {"begin": "<n>", "end": "</n>", "schema": _TAG["structures"][0]["schema"]},
    ),
)
_STREAMED = ("regex", "choice", "grammar")
_COMPLETED = ("regex", "choice")


def _case(row: Any, *, prefix: str, need: Capability, where: str, **ask: Any) -> Case:
    name, what, constraint, right, check, args = row
    body = ask.pop("body") | {"structured_outputs": constraint}
    return Case(
        id=f"structured.{prefix}{name}",
        title=f"`structured_outputs` hold {where} to {what}",
        why="The text is read by a program that knows nothing else.",
        clauses=("tidegate:structured.extension",),
        severity=Severity.WRONG_DATA,
        profile=Profile.TIDEGATE,
        needs=(Capability.STRUCTURED_OUTPUTS, need),
        asks=(Ask(body=body, script=plays(right), is_refusable=True, **ask),),
        expects=(expect(has_answer), expect(check, **args)),
    )


_QUESTION = "Answer in one long sentence. <n>"
CASES: tuple[Case, ...] = (
    *(
        _case(row, prefix="text_", need=Capability.CHAT, where="a chat", body=chat_body(_QUESTION, max_tokens=120))
        for row in _ROWS
    ),
    *(
        _case(
            row,
            prefix="streamed_text_",
            need=Capability.STREAMS,
            where="a stream",
            body=chat_body(_QUESTION, max_tokens=64, stream=True),
        )
        for row in _ROWS
        if row[0] in _STREAMED
    ),
    *(
        _case(
            row,
            prefix="completed_text_",
            need=Capability.COMPLETIONS,
            where="a completion",
            path="/completions",
            body=completion_body("The answer is ", max_tokens=64),
        )
        for row in _ROWS
        if row[0] in _COMPLETED
    ),
)
