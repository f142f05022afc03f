"""Schemas and formats that are none, or cannot be enforced: refused at their place, before anything runs."""

from typing import Any

from tidegate.conformance.ask import Ask
from tidegate.conformance.case import Case, Profile, Severity, expect
from tidegate.conformance.catalog.bodies import chat_body
from tidegate.conformance.catalog.structured import schema_format
from tidegate.conformance.catalog.tool_bodies import closed
from tidegate.conformance.checks.invalid_value import is_refused, is_refused_before_streaming, names_fault
from tidegate.conformance.probing.capability import Capability

_AT = "response_format.json_schema.schema"
_YES = closed(ok={"type": "boolean"})
_NONE = closed(a={"type": "colour"})
_FORMAT = schema_format(_YES)["json_schema"]


def _deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "boolean"}
    for _ in range(levels):
        inner = {"type": "array", "items": inner}
    return closed(a=inner)


_BROKEN: tuple[tuple[str, str, Any], ...] = (
    ("type", "A response_format of an unknown type", {"type": "yaml"}),
    ("word", "A response_format that is a word", "json_object"),
    ("no_type", "A response_format without a type", {"json_schema": _FORMAT}),
    ("no_schema_object", "`json_schema` without json_schema", {"type": "json_schema"}),
    ("no_name", "A schema without a name", {"type": "json_schema", "json_schema": {"schema": _YES, "strict": True}}),
    ("name", "A name of other characters than letters, digits, _ and -", schema_format(_YES, name="my answer!")),
    ("schema_list", "A schema that is a list", schema_format([_YES])),
    ("schema_type", "A schema with a type that does not exist", schema_format(closed(a={"type": "colour"}))),
    (
        "schema_members",
        "A schema whose `properties` are a list",
        schema_format({"type": "object", "properties": ["a"]}),
    ),
)
_NO_SCHEMAS = ("schema_list", "schema_type", "schema_members")
_HARMLESS = ("no_name", "name")
"""Only the name is wrong, and nothing of the answer depends on it."""

_EXACT: tuple[tuple[str, str, Any, dict[str, Any]], ...] = (
    (
        "type",
        "A type that does not exist is `invalid_schema` at its path",
        closed(a={"type": "colour"}),
        {"code": "invalid_schema", "param": f"{_AT}.properties.a.type"},
    ),
    (
        "members",
        "`properties` that are a list are `invalid_schema` at their path",
        {"type": "object", "properties": ["a"]},
        {"code": "invalid_schema", "param": f"{_AT}.properties"},
    ),
    (
        "dangling",
        "A reference to nothing is `invalid_schema` at its path",
        closed(a={"$ref": "#/$defs/none"}),
        {"code": "invalid_schema", "param": f"{_AT}.properties.a.$ref"},
    ),
    (
        "endless",
        "A reference to itself without end is `invalid_schema` at its path",
        {"$ref": "#"},
        {"code": "invalid_schema", "param": f"{_AT}.$ref"},
    ),
    (
        "unsatisfiable",
        "A schema that nothing satisfies is `invalid_schema`",
        closed(a={"type": "integer", "minimum": 5, "maximum": 3}),
        {"code": "invalid_schema", "param": _AT},
    ),
    (
        "look_around",
        "Look-around in a pattern is `unsupported_schema` at its path",
        closed(a={"type": "string", "pattern": "(?=x)y"}),
        {"code": "unsupported_schema", "param": f"{_AT}.properties.a.pattern"},
    ),
    (
        "dynamic",
        "`$dynamicRef` is `unsupported_schema` at its path",
        closed(a={"$dynamicRef": "#a"}),
        {"code": "unsupported_schema", "param": f"{_AT}.properties.a.$dynamicRef"},
    ),
    (
        "remote",
        "A reference into another document is `unsupported_schema`, and is not fetched",
        closed(a={"$ref": "http://127.0.0.1:9/a.json"}),
        {"code": "unsupported_schema", "param": f"{_AT}.properties.a.$ref"},
    ),
    (
        "depth",
        "A schema that is too deep is `grammar_too_complex`, with the limit",
        _deep(70),
        {"code": "grammar_too_complex", "param": _AT, "limit": "schema_depth"},
    ),
    (
        "bytes",
        "A schema that is too large is `grammar_too_complex`, with the limit",
        closed(a={"enum": ["x" * 270_000]}),
        {"code": "grammar_too_complex", "param": _AT, "limit": "schema_bytes"},
    ),
    ("list", "A schema that is a list is `invalid_value` at its path", [_YES], {"code": "invalid_value", "param": _AT}),
)

_EXTENSIONS: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    (
        "two",
        "Two kinds of constraint at once are refused",
        {"structured_outputs": {"regex": "a", "choice": ["a"]}},
        {"code": "invalid_value", "param": "structured_outputs"},
    ),
    (
        "none",
        "`structured_outputs` without a kind are refused",
        {"structured_outputs": {}},
        {"code": "invalid_value", "param": "structured_outputs"},
    ),
    (
        "both",
        "`structured_outputs` beside another response_format are refused",
        {"structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"}},
        {"code": "invalid_value", "param": "structured_outputs"},
    ),
    (
        "regex",
        "A regular expression that is none is `invalid_schema`",
        {"structured_outputs": {"regex": "(a"}},
        {"code": "invalid_schema", "param": "structured_outputs.regex"},
    ),
    (
        "lark",
        "A grammar that is none is `invalid_schema`",
        {"structured_outputs": {"grammar": "start: ["}},
        {"code": "invalid_schema", "param": "structured_outputs.grammar"},
    ),
    (
        "choice",
        "An empty list of choices is refused",
        {"structured_outputs": {"choice": []}},
        {"code": "invalid_value", "param": "structured_outputs.choice"},
    ),
    (
        "tag",
        "A tag that begins with no trigger is `invalid_schema`",
        {
            "structured_outputs": {
                "structural_tag": {
                    "type": "structural_tag",
                    "triggers": ["<n"],
                    "structures": [{"begin": "<m>", "schema": _YES, "end": "</m>"}],
                }
            }
        },
        {"code": "invalid_schema", "param": "structured_outputs.structural_tag.structures[0].begin"},
    ),
)


def _broken(name: str, what: str, response_format: Any) -> Case:
    return Case(
        id=f"structured.refuses_{name}",
        title=f"{what} is refused",
        why="Taken without a word, the answer has no form at all, and nobody is told.",
        clauses=(
            "openai:response_format.shape",
            *(("openai:response_format.schema",) if name in _NO_SCHEMAS else ()),
            "openai:errors.blame",
        ),
        severity=Severity.NUISANCE if name in _HARMLESS else Severity.WRONG_DATA,
        needs=(Capability.JSON_SCHEMA,),
        asks=(Ask(body=chat_body(response_format=response_format)),),
        expects=(expect(is_refused),),
    )


def _ours(name: str, title: str, clause: str, fields: dict[str, Any], args: dict[str, Any], need: Capability) -> Case:
    return Case(
        id=f"structured.exact_{name}",
        title=title,
        why="A developer looks for the fault in the wrong place.",
        clauses=("tidegate:errors.param", f"tidegate:structured.{clause}"),
        severity=Severity.NUISANCE,
        profile=Profile.TIDEGATE,
        needs=(need,),
        asks=(Ask(body=chat_body(**fields)),),
        expects=(expect(names_fault, **args),),
    )


CASES: tuple[Case, ...] = (
    *(_broken(*row) for row in _BROKEN),
    Case(
        id="structured.refuses_before_streaming",
        title="A schema that is none is refused with a status, also where a stream was asked for",
        why="A 200 tells load balancers and retries that all is well; many clients never see an error inside a stream.",
        clauses=("openai:response_format.streamed", "openai:errors.status", "openai:errors.blame"),
        severity=Severity.BREAKS_CLIENTS,
        needs=(Capability.JSON_SCHEMA, Capability.STREAMS),
        asks=(
            Ask(name="whole", body=chat_body(response_format=schema_format(_NONE))),
            Ask(body=chat_body(response_format=schema_format(_NONE), stream=True)),
        ),
        expects=(expect(is_refused_before_streaming, "whole", "it"),),
    ),
    *(
        _ours(name, title, "invalid", {"response_format": schema_format(schema)}, args, Capability.JSON_SCHEMA)
        for name, title, schema, args in _EXACT
    ),
    *(
        _ours(f"extension_{name}", title, "extension", fields, args, Capability.STRUCTURED_OUTPUTS)
        for name, title, fields, args in _EXTENSIONS
    ),
    *(
        _ours(
            name,
            f"`{name}`, which other servers once knew, is refused, and the message names structured_outputs",
            "old_names",
            {name: value},
            {"code": "invalid_value", "param": name, "says": "structured_outputs"},
            Capability.CHAT,
        )
        for name, value in (
            ("guided_json", _YES),
            ("guided_regex", "[a-c]"),
            ("guided_choice", ["a", "b"]),
            ("guided_grammar", 'start: "a"'),
        )
    ),
)
