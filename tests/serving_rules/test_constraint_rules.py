"""From `response_format` and `structured_outputs` to a spec, or to a refusal that names the place in the body."""

import json
from typing import Any

import pytest

from tidegate.contract.bounds import Limits
from tidegate.contract.chat import ChatRequest
from tidegate.contract.codec import decode_chat, decode_completion
from tidegate.contract.error_table import error_answer
from tidegate.contract.unknown_fields import unknown_fields
from tidegate.errors import ClientFault, InvalidValue
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.inference.grammar_spec import (
    ChoiceSpec,
    GrammarSpec,
    JsonObjectSpec,
    JsonSchemaSpec,
    LarkSpec,
    RegexSpec,
    StructuralTag,
    StructuralTagSpec,
)
from tidegate.serving.constraint import Constraint, member_path
from tidegate.serving.constraint_rules import DROPPED_CONDITIONS, constraint_of
from tidegate.serving.request_policy import RequestPolicy
from tidegate.serving.request_rules import check_chat, check_completion, check_replaced_fields

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"pattern": "x"}}}
TEXT = b'{"type":"object","properties":{"b":{"type":"integer"},"a":{"pattern":"x"}}}'
PING = {"type": "function", "function": {"name": "ping"}}
OLD_TAGS = {
    "type": "structural_tag",
    "structures": [
        {"begin": "<f=a>", "schema": {"type": "object"}, "end": "</f>"},
        {"begin": "<f=b>", "schema": SCHEMA, "end": "</f>"},
    ],
    "triggers": ["<f="],
}
NEW_TAGS = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<f="],
        "tags": [
            {"type": "tag", "begin": "<f=a>", "content": {"type": "json_schema", "json_schema": {}}, "end": "</f>"},
            {"begin": "<f=b>", "content": {"type": "json_schema", "json_schema": SCHEMA}, "end": "</f>"},
        ],
        "at_least_one": False,
    },
}


def named(schema: Any, **members: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, **members}}


def structured(**members: Any) -> dict[str, Any]:
    return {"structured_outputs": members}


def tag(form: Any) -> dict[str, Any]:
    return structured(structural_tag={"type": "structural_tag", "format": form})


def of_chat(limits: Limits | None = None, **members: Any) -> Constraint | None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "a"}], **members}).encode()
    request = decode_chat(body, Limits())
    check_chat(request, RequestPolicy(limits or Limits()))
    return constraint_of(request, limits or Limits())


def of_completion(limits: Limits | None = None, **members: Any) -> Constraint | None:
    request = decode_completion(json.dumps({"model": "m", "prompt": "a", **members}).encode(), Limits())
    check_completion(request, RequestPolicy(limits or Limits()))
    return constraint_of(request, limits or Limits())


ROUTES = {"chat": of_chat, "completions": of_completion}

ASKED: list[tuple[dict[str, Any], GrammarSpec | None]] = [
    ({}, None),
    ({"response_format": None, "structured_outputs": None}, None),
    ({"response_format": {"type": "text"}}, None),
    ({"response_format": {"type": "json_object"}}, JsonObjectSpec()),
    ({"response_format": named(SCHEMA)}, JsonSchemaSpec(TEXT)),
    ({"response_format": named(SCHEMA, strict=False, description="d")}, JsonSchemaSpec(TEXT)),
    ({"response_format": named(SCHEMA, strict=True)}, JsonSchemaSpec(TEXT)),
    (structured(json=SCHEMA), JsonSchemaSpec(TEXT)),
    (structured(json=TEXT.decode()), JsonSchemaSpec(TEXT)),
    (structured(json="true"), JsonSchemaSpec(b"true")),
    (structured(regex="[a-z]+"), RegexSpec("[a-z]+")),
    (structured(choice=["b", "a"]), ChoiceSpec(("b", "a"))),
    (structured(grammar='start: "a"'), LarkSpec('start: "a"')),
    ({"response_format": {"type": "text"}, **structured(regex="a")}, RegexSpec("a")),
    (
        structured(structural_tag=OLD_TAGS),
        StructuralTagSpec(
            (StructuralTag("<f=a>", b'{"type":"object"}', "</f>"), StructuralTag("<f=b>", TEXT, "</f>")), ("<f=",)
        ),
    ),
    (
        structured(structural_tag=json.dumps(NEW_TAGS)),
        StructuralTagSpec((StructuralTag("<f=a>", b"{}", "</f>"), StructuralTag("<f=b>", TEXT, "</f>")), ("<f=",)),
    ),
    (tag({"type": "json_schema", "json_schema": SCHEMA, "style": "json"}), JsonSchemaSpec(TEXT)),
    (tag({"type": "regex", "pattern": "a"}), RegexSpec("a")),
    (tag({"type": "const_string", "value": "a"}), ChoiceSpec(("a",))),
    (
        tag({"type": "or", "elements": [{"type": "const_string", "value": text} for text in "xy"]}),
        ChoiceSpec(("x", "y")),
    ),
]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("number", range(len(ASKED)))
def test_what_is_asked_for_becomes_one_spec(route: str, number: int) -> None:
    members, spec = ASKED[number]
    found = ROUTES[route](**members)
    assert (found.spec if found is not None else None) == spec


TAG = "structured_outputs.structural_tag"
FORMAT = f"{TAG}.format"
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (structured(), "invalid_value", "structured_outputs"),
    (structured(json=SCHEMA, regex="a"), "invalid_value", "structured_outputs"),
    ({"response_format": {"type": "json_object"}, **structured(regex="a")}, "invalid_value", "structured_outputs"),
    ({"response_format": {"type": "xml"}}, "invalid_value", "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, "missing_field", "response_format.json_schema"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
        "missing_field",
        "response_format.json_schema.schema",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
        "missing_field",
        "response_format.json_schema.name",
    ),
    ({"response_format": named({}, name="a b")}, "invalid_value", "response_format.json_schema.name"),
    ({"response_format": named({}, name="a" * 65)}, "invalid_value", "response_format.json_schema.name"),
    ({"response_format": named({}, strict="yes")}, "invalid_value", "response_format.json_schema.strict"),
    ({"response_format": named([])}, "invalid_value", "response_format.json_schema.schema"),
    (structured(json=[SCHEMA]), "invalid_value", "structured_outputs.json"),
    (structured(json=1), "invalid_value", "structured_outputs.json"),
    (structured(regex=1), "invalid_value", "structured_outputs.regex"),
    (structured(choice=[]), "invalid_value", "structured_outputs.choice"),
    (structured(choice="ab"), "invalid_value", "structured_outputs.choice"),
    (structured(choice=["a", 1]), "invalid_value", "structured_outputs.choice[1]"),
    (structured(grammar={}), "invalid_value", "structured_outputs.grammar"),
    (structured(structural_tag="{"), "invalid_schema", TAG),
    (structured(structural_tag="[" * 100_000), "invalid_schema", TAG),
    (structured(structural_tag=[]), "invalid_value", TAG),
    (structured(structural_tag={}), "invalid_value", f"{TAG}.type"),
    (structured(structural_tag={"type": "structural_tag"}), "missing_field", f"{TAG}.structures"),
    (structured(structural_tag={**OLD_TAGS, "triggers": []}), "invalid_value", f"{TAG}.triggers"),
    (structured(structural_tag={**OLD_TAGS, "triggers": ["<f=", 1]}), "invalid_value", f"{TAG}.triggers[1]"),
    (structured(structural_tag={**OLD_TAGS, "structures": [1]}), "invalid_value", f"{TAG}.structures[0]"),
    (
        structured(structural_tag={**OLD_TAGS, "structures": [{"begin": "<f=", "schema": {}}]}),
        "missing_field",
        f"{TAG}.structures[0].end",
    ),
    (
        structured(structural_tag={**OLD_TAGS, "structures": [{"begin": "<f=", "schema": 1, "end": ""}]}),
        "invalid_value",
        f"{TAG}.structures[0].schema",
    ),
    (structured(structural_tag={**OLD_TAGS, "stop": 1}), "unsupported_schema", f"{TAG}.stop"),
    (tag(1), "invalid_value", FORMAT),
    (tag({"type": "any_text"}), "unsupported_schema", f"{FORMAT}.type"),
    (tag({"type": "sequence", "elements": []}), "unsupported_schema", f"{FORMAT}.type"),
    (tag({"type": "grammar", "grammar": 'root ::= "a"'}), "unsupported_schema", f"{FORMAT}.type"),
    (tag({"type": "or", "elements": [{"type": "regex"}]}), "unsupported_schema", f"{FORMAT}.elements[0].type"),
    (tag({"type": "regex", "pattern": "a", "flags": "i"}), "unsupported_schema", f"{FORMAT}.flags"),
    (tag({**NEW_TAGS["format"], "at_least_one": True}), "unsupported_schema", f"{FORMAT}.at_least_one"),  # type: ignore[dict-item]
    (
        tag({"type": "json_schema", "json_schema": {}, "style": "qwen_xml"}),
        "unsupported_schema",
        f"{FORMAT}.style",
    ),
    (
        tag(
            {
                "type": "triggered_tags",
                "triggers": ["<"],
                "tags": [{"begin": "<", "content": {"type": "any_text"}, "end": ""}],
            }
        ),
        "unsupported_schema",
        f"{FORMAT}.tags[0].content.type",
    ),
]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_cannot_be_meant_is_400_with_its_place(route: str, number: int) -> None:
    members, code, param = REFUSED[number]
    with pytest.raises(ClientFault) as raised:
        ROUTES[route](**members)
    answer = error_answer(raised.value)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"], error["param"]) == (400, code, param)


TAGS = {"type": "structural_tag", "structures": [{"begin": "<a>", "schema": {}, "end": "</a>"}], "triggers": ["<a>"]}


def test_structural_tags_beside_tools_that_may_be_called_are_400() -> None:
    named_choice = {"type": "function", "function": {"name": "ping"}}
    for choice in (None, "auto", "required", named_choice):
        with pytest.raises(InvalidValue) as raised:
            of_chat(**structured(structural_tag=TAGS), tools=[PING], tool_choice=choice)
        assert raised.value.param == "structured_outputs"
    for members in ({"tools": []}, {"tools": [PING], "tool_choice": "none"}):
        assert of_chat(**structured(structural_tag=TAGS), **members) is not None
    for constraint in ({"response_format": named(SCHEMA)}, structured(regex="a")):
        assert of_chat(**constraint, tools=[PING]) is not None


LARGE: list[tuple[dict[str, Any], str, str]] = [
    (structured(regex="a" * 101), "schema_bytes", "structured_outputs.regex"),
    (structured(grammar="é" * 51), "schema_bytes", "structured_outputs.grammar"),
    (structured(choice=["a" * 50, "b" * 51]), "schema_bytes", "structured_outputs.choice"),
    (structured(json={"a": "b" * 100}), "schema_bytes", "structured_outputs.json"),
    (structured(structural_tag=" " * 101), "schema_bytes", TAG),
    (
        structured(
            structural_tag={
                "type": "structural_tag",
                "structures": [{"begin": "<" * 100, "schema": {}, "end": ""}],
                "triggers": ["<"],
            }
        ),
        "schema_bytes",
        TAG,
    ),
    (
        {"response_format": named({"not": {"not": {"not": {"not": {}}}}})},
        "schema_depth",
        "response_format.json_schema.schema",
    ),
    (structured(json='{"not":{"not":{"not":{"not":{}}}}}'), "schema_depth", "structured_outputs.json"),
]


@pytest.mark.parametrize("number", range(len(LARGE)))
def test_sizes_are_bounded_and_may_be_lowered(number: int) -> None:
    members, limit, param = LARGE[number]
    with pytest.raises(ClientFault) as raised:
        of_chat(Limits(schema_bytes=100, schema_depth=4), **members)
    error = json.loads(error_answer(raised.value).body)["error"]
    assert (error["code"], error["param"], error["limit"]["name"]) == ("grammar_too_complex", param, limit)
    assert error["limit"]["actual"] > error["limit"]["value"]


@pytest.mark.parametrize("name", DROPPED_CONDITIONS)
def test_a_condition_of_another_server_is_not_dropped(name: str) -> None:
    field, _, member = name.partition(".")
    inside = {"type": "json_object"} if field == "response_format" else {"regex": "a"}
    body = json.dumps({"model": "m", field: {**inside, member: True}}).encode()
    with pytest.raises(InvalidValue) as raised:
        check_replaced_fields(unknown_fields(body, ChatRequest, Limits()))
    assert raised.value.param == name


PLACES = [
    ("", {}, "s"),
    ("/properties/a/pattern", {"properties": {"a": {}}}, "s.properties.a.pattern"),
    ("/anyOf/1/type", {"anyOf": [{}, {}]}, "s.anyOf[1].type"),
    ("/properties/0", {"properties": {"0": {}}}, 's.properties["0"]'),
    ("/properties/a b~1c~0", {"properties": {}}, 's.properties["a b/c~"]'),
    ("/$defs/x-y/items", {"$defs": {}}, "s.$defs.x-y.items"),
    ("/anyOf/7/allOf/0", {}, "s.anyOf[7].allOf[0]"),
]


@pytest.mark.parametrize(("pointer", "value", "path"), PLACES)
def test_a_pointer_becomes_the_path_in_the_body(pointer: str, value: Any, path: str) -> None:
    assert member_path("s", pointer, value) == path


LOCATED = [
    (
        {"response_format": named(SCHEMA)},
        "/properties/a/pattern",
        "response_format.json_schema.schema.properties.a.pattern",
    ),
    (structured(json=TEXT.decode()), "/properties/a", "structured_outputs.json.properties.a"),
    (structured(json="{"), "/x", "structured_outputs.json"),
    (structured(regex="("), "/x", "structured_outputs.regex"),
    (structured(structural_tag=OLD_TAGS), "/tags/1/begin", f"{TAG}.structures[1].begin"),
    (structured(structural_tag=OLD_TAGS), "/tags/1/schema", f"{TAG}.structures[1].schema"),
    (
        structured(structural_tag=OLD_TAGS),
        "/tags/1/schema/properties/a/pattern",
        f"{TAG}.structures[1].schema.properties.a.pattern",
    ),
    (structured(structural_tag=NEW_TAGS), "/tags/1/schema/type", f"{FORMAT}.tags[1].content.json_schema.type"),
    (tag({"type": "json_schema", "json_schema": SCHEMA}), "/properties/a", f"{FORMAT}.json_schema.properties.a"),
]


@pytest.mark.parametrize("number", range(len(LOCATED)))
def test_a_refusal_names_the_place_in_the_body(number: int) -> None:
    members, pointer, param = LOCATED[number]
    constraint = of_chat(**members)
    assert constraint is not None
    error = constraint.error(GrammarRefusal(RefusalKind.UNSUPPORTED_SCHEMA, "not enforced", pointer))
    assert error.param == param
    assert error.message == f"{param}: not enforced"
    assert constraint.error(GrammarRefusal(RefusalKind.INVALID_SCHEMA, "no")).param == constraint.param
