"""The `schema` cases: instances as values, texts as they are, and the order of properties."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.schema_judge import accepts, accepts_text, byte_compiler
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.grammar_spec import JsonSchemaSpec

LINES = (Path(__file__).parents[1] / "data/cases/cases.jsonl").read_text("utf-8").splitlines()
CASES = [case for case in map(json.loads, LINES) if case["kind"] == "schema"]
COMPILER, _ = byte_compiler()


def schema_of(given: dict[str, Any]) -> Any:
    """Several tools are one union; each keeps its own definitions, because it is a resource of its own."""
    if "tools" not in given:
        return given["schema"]
    functions = [tool["function"] for tool in given["tools"]]
    options = [
        {
            "type": "object",
            "properties": {
                "name": {"const": function["name"]},
                "arguments": {"$id": f"tool:{number}", **function["parameters"]},
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for number, function in enumerate(functions)
    ]
    return {"anyOf": options}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_schema_case(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expect"]
    schema = schema_of(given)
    grammar = COMPILER.compile(JsonSchemaSpec(json.dumps(schema).encode()))
    if not expected["compiles"]:
        assert isinstance(grammar, GrammarRefusal)
        return
    assert not isinstance(grammar, GrammarRefusal), "enforced, even where refusing would be allowed"
    assert [value for value in given["instance_ok"] if not accepts(grammar, value, schema)] == []
    assert [value for value in given["instance_bad"] if accepts(grammar, value, schema)] == []
    assert [text for text in given.get("raw_ok", ()) if not accepts_text(grammar, text)] == []
    assert [text for text in given.get("raw_bad", ()) if accepts_text(grammar, text)] == []
    for value in given["instance_ok"] if "generation_order" in expected else ():
        ordered = {name: value[name] for name in expected["generation_order"]}
        assert accepts_text(grammar, json.dumps(ordered))
        assert not accepts_text(grammar, json.dumps(dict(reversed(ordered.items()))))


def test_there_are_cases() -> None:
    assert len(CASES) == 24
