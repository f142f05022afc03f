"""Objects with as many optional properties as may be: all of them can come next, wherever the object stands."""

import json
from typing import Any

import pytest

from harness.schema_judge import byte_compiler
from tidegate.grammar.mask_buffer import allowed_ids
from tidegate.grammar.matcher import MaskRow
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.grammar.schema.lowered_bounds import MAX_PROPERTIES
from tidegate.inference.grammar_spec import JsonSchemaSpec

COMPILER, WORDS = byte_compiler()


def optional(count: int, letter: str = "k") -> dict[str, Any]:
    return {"type": "object", "properties": {f"{letter}{i}": {"type": "object"} for i in range(count)}}


def compile_schema(schema: dict[str, Any]) -> Any:
    return COMPILER.compile(JsonSchemaSpec(json.dumps(schema).encode()))


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [optional(151, "a"), optional(150, "b")]},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [optional(200, "a"), optional(101, "b")]}}},
        {"items": {"type": "array", "items": optional(301)}},
    ],
    ids=["cases", "references", "nested"],
)
def test_properties_of_all_cases_count_together(schema: dict[str, Any]) -> None:
    refusal = compile_schema(schema)
    assert isinstance(refusal, GrammarRefusal)
    assert refusal.limit is not None
    assert (refusal.limit.name, refusal.limit.actual) == ("schema_properties", MAX_PROPERTIES + 1)


def test_required_properties_do_not_count() -> None:
    names = [f"k{i}" for i in range(500)]
    properties = {name: {"type": "null"} for name in names}
    schema = {"type": "object", "properties": properties, "required": names}
    assert not isinstance(compile_schema(schema), GrammarRefusal)


@pytest.mark.parametrize(
    "inner", [optional(MAX_PROPERTIES), {"anyOf": [optional(MAX_PROPERTIES // 2), optional(MAX_PROPERTIES // 2, "l")]}]
)
def test_as_many_as_may_be_leave_a_way_on_deep_inside(inner: dict[str, Any]) -> None:
    grammar = compile_schema({"type": "array", "items": {"type": "object", "properties": {"a": inner}}})
    assert not isinstance(grammar, GrammarRefusal)
    machine = grammar.make_matcher()
    for byte in b'[{"a":{"k3":{},"k7":{"x":1},"k149":{"a":[]}}},{"a":{"k':
        COMPILER.fill([MaskRow(machine, 0)])
        assert byte in allowed_ids(WORDS[0], 256)
        assert machine.accept([byte])
    assert machine.error is None
