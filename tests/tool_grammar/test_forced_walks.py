"""The other way round: whatever a machine allows is, to the family's own parser, calls that the schemas allow."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness.parsed_output import parser_of, read_output
from harness.tool_walk import WalkVocabulary, byte_vocabulary, marked_vocabulary, model_vocabulary
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.parsers.families import FAMILIES
from tidegate.parsers.tool_format import PythonCalls, ToolFormat
from tidegate.parsers.tool_grammar import GrammarTool, tool_grammar

NAMES = sorted(FAMILIES)
SAMPLE = Path(__file__).parents[1] / "data/jsonschemabench/sample.jsonl"
PING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
TIDE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "port": {"type": "string", "minLength": 1, "maxLength": 12},
        "day": {"type": "integer", "minimum": 1, "maximum": 31},
        "units": {"enum": ["m", "ft", None, 3]},
        "note": {"anyOf": [{"type": "string", "pattern": "^[a-z]{2,4}$"}, {"type": "null"}]},
        "deep": {
            "type": "object",
            "properties": {
                "on": {"type": "boolean"},
                "list": {"type": "array", "items": {"type": ["boolean", "string"], "maxLength": 6}, "maxItems": 2},
            },
            "required": ["on"],
            "additionalProperties": False,
        },
        "code": {"type": ["integer", "string", "boolean"], "maxLength": 6},
    },
    "required": ["port"],
    "additionalProperties": False,
}
TOOLS = {"tide_at": TIDE, "ping": PING, "tide": PING}


def hints_of(form: ToolFormat) -> list[str]:
    style = form.style
    marks = [*form.closes, *(form.section or ()), '"', "}", "]", ")", "true", "null"]
    for attribute in style.__dataclass_fields__:
        value = getattr(style, attribute)
        marks += [value] if isinstance(value, str) else list(value) if isinstance(value, tuple) else []
    return [mark for mark in dict.fromkeys(marks) if mark]


def bfcl_tools() -> list[dict[str, Any]]:
    """The functions of jsonschemabench's BFCL schemas, each schema's own as one set of tools."""
    found = []
    for line in SAMPLE.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["family"].startswith("BFCL"):
            parts = row["schema"].get("anyOf", [row["schema"]])
            functions = {name: part for option in parts for name, part in option["properties"].items()}
            found.append({name.replace(".", "_")[:64]: part for name, part in functions.items()})
    return found


def check_walks(
    vocabulary: WalkVocabulary, name: str, tools: dict[str, Any], seeds: range, **choice: bool
) -> tuple[int, int]:
    """Walks once for each seed; returns how many walks ended, and with how many calls."""
    offered = [GrammarTool(tool, json.dumps(schema).encode(), is_strict=True) for tool, schema in tools.items()]
    spec = tool_grammar(FAMILIES[name], offered, vocabulary.tokens, **choice)  # type: ignore[arg-type]
    assert spec is not None
    grammar = vocabulary.compiler.compile(spec)
    assert not isinstance(grammar, GrammarRefusal), grammar
    num_ended = num_calls = 0
    for seed in seeds:
        text = vocabulary.walk(grammar, hints_of(FAMILIES[name]), seed)
        if text is None:
            continue
        output = read_output(parser_of(name, tools=tools), [text])
        num_ended += 1
        num_calls += len(output.calls)
        if choice["is_required"]:
            assert output.calls, text
            assert output.content == "", text
        assert choice["allows_many"] or len(output.calls) <= 1, text
        for tool, arguments in output.calls:
            if "Infinity" not in json.dumps(arguments):
                validator = jsonschema_rs.validator_for(tools[tool], validate_formats=True)
                assert validator.is_valid(arguments), (text, arguments)
    return num_ended, num_calls


@pytest.mark.parametrize("name", NAMES)
def test_what_is_allowed_is_valid_calls(name: str) -> None:
    vocabulary = byte_vocabulary()
    for is_required in (True, False):
        for allows_many in (True, False):
            num_ended, _ = check_walks(
                vocabulary, name, TOOLS, range(4), is_required=is_required, allows_many=allows_many
            )
            assert num_ended
    assert check_walks(vocabulary, name, {"tide_at": TIDE}, range(3), is_required=True, allows_many=False)[1]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_holds_where_markers_are_control_tokens(name: str) -> None:
    vocabulary = marked_vocabulary(FAMILIES[name])
    for is_required in (True, False):
        assert check_walks(vocabulary, name, TOOLS, range(4), is_required=is_required, allows_many=is_required)[0]


@pytest.mark.parametrize("name", ["hermes", "json", "qwen3_coder", "pythonic", "gemma4", "harmony"])
def test_the_same_holds_for_tokens_of_a_model(name: str) -> None:
    assert check_walks(model_vocabulary(), name, TOOLS, range(3), is_required=True, allows_many=True)[0]
    check_walks(model_vocabulary(), name, TOOLS, range(2), is_required=False, allows_many=True)


@pytest.mark.parametrize("name", NAMES)
def test_functions_from_practice_are_called_as_their_schemas_say(name: str) -> None:
    number = NAMES.index(name)
    sets = bfcl_tools()
    for tools in sets[number % 8 :: 12]:
        if isinstance(FAMILIES[name].style, PythonCalls) and any("." in key for t in tools.values() for key in t):
            continue
        check_walks(byte_vocabulary(), name, tools, range(1), is_required=True, allows_many=False)
