"""The second backend enforces or refuses: all of the official suite, a part of jsonschemabench, all small lowerings."""

import itertools
import json
import random
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness.schema_judge import accepts, accepts_text, byte_compiler, finite_value, random_text
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.inference.grammar_spec import JsonSchemaSpec, LarkSpec, RegexSpec

pytest.importorskip("xgrammar", reason="the extra tidegate[xgrammar] is not installed")

DATA = Path(__file__).parents[1] / "data"
SUITE: dict[str, list[dict[str, Any]]] = json.loads(
    (DATA / "json-schema-test-suite/draft2020-12.json").read_text("utf-8")
)
SAMPLE = [json.loads(line) for line in (DATA / "jsonschemabench/sample.jsonl").read_text("utf-8").splitlines()]
CASES = [json.loads(line) for line in (DATA / "cases/cases.jsonl").read_text("utf-8").splitlines()]
SCHEMA_CASES = [case for case in CASES if case["kind"] == "schema" and "schema" in case["input"]]
COMPILER, WORDS = byte_compiler("xgrammar")


def compile_schema(schema: Any) -> Any:
    return COMPILER.compile(JsonSchemaSpec(json.dumps(schema).encode()))


def test_no_instance_of_the_official_suite_is_accepted_that_is_not_valid() -> None:
    weaker = []
    num_enforced = 0
    for file, groups in SUITE.items():
        for group in groups:
            grammar = compile_schema(group["schema"])
            if not isinstance(grammar, GrammarRefusal):
                num_enforced += 1
                wrong = [t["data"] for t in group["tests"] if not t["valid"] and accepts(grammar, t["data"])]
                weaker += [(file, group["description"], value) for value in wrong]
    assert weaker == []
    assert num_enforced >= 280


def test_schemas_from_practice_are_enforced_or_refused() -> None:
    num_enforced = 0
    for row in SAMPLE[:120]:
        grammar = compile_schema(row["schema"])
        if isinstance(grammar, GrammarRefusal):
            assert grammar.path is not None or grammar.kind is RefusalKind.GRAMMAR_TOO_COMPLEX
            continue
        num_enforced += 1
        invalid = [test["data"] for test in row["tests"] if not test["valid"]]
        assert [value for value in invalid if accepts(grammar, value, row["schema"])] == []
        text = random_text(COMPILER, WORDS, grammar, seed=2)
        validator = jsonschema_rs.validator_for(row["schema"], validate_formats=True)
        value = None if text is None else finite_value(text)
        assert value is None or validator.is_valid(value), (row["id"], text)
    assert num_enforced >= 60


@pytest.mark.parametrize("case", SCHEMA_CASES, ids=lambda case: case["id"])
def test_a_schema_case_is_kept_or_refused(case: dict[str, Any]) -> None:
    given = case["input"]
    schema = given["schema"]
    grammar = compile_schema(schema)
    if isinstance(grammar, GrammarRefusal):
        return
    assert case["expect"]["compiles"]
    assert [value for value in given["instance_ok"] if not accepts(grammar, value, schema)] == []
    assert [value for value in given["instance_bad"] if accepts(grammar, value, schema)] == []
    assert [text for text in given.get("raw_ok", ()) if not accepts_text(grammar, text)] == []
    assert [text for text in given.get("raw_bad", ()) if accepts_text(grammar, text)] == []


RANGES = [(None, 7), (-3, None), (0, 0), (12, 345), (-17, 5), (-250, -99), (99, 101), (5, 4)]


@pytest.mark.parametrize("bounds", RANGES, ids=str)
def test_integers_within_bounds_are_those_and_no_others(bounds: tuple[int | None, int | None]) -> None:
    names = ("minimum", "maximum")
    schema = {"type": "integer", **{name: b for name, b in zip(names, bounds, strict=True) if b is not None}}
    grammar = compile_schema(schema)
    low, high = bounds
    wanted = [i for i in range(-400, 401) if (low is None or i >= low) and (high is None or i <= high)]
    if isinstance(grammar, GrammarRefusal):
        assert wanted == []
        return
    assert [i for i in range(-400, 401) if accepts(grammar, i)] == wanted


BETWEEN_NEIGHBOURS = [("minimum", -0.909), ("exclusiveMinimum", -0.909)]
"""Negative numbers above -1 lie between 0 and a bound with the same whole part, which is not written."""


@pytest.mark.parametrize("keyword", ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"])
@pytest.mark.parametrize("bound", [0, 1, -1, 2.5, -2.5, 10.09, 0.05, -0.909])
def test_numbers_with_a_bound_are_those_and_no_others(keyword: str, bound: float) -> None:
    schema = {"type": "number", keyword: bound}
    grammar = compile_schema(schema)
    if isinstance(grammar, GrammarRefusal):
        assert grammar.kind is RefusalKind.UNSUPPORTED_SCHEMA
        assert (keyword, bound) in BETWEEN_NEIGHBOURS
        return
    validator = jsonschema_rs.validator_for(schema)
    steps = [0, 0.01, 0.04, 0.049, 0.05, 0.051, 0.09, 0.1, 0.5, 0.9, 0.909, 0.91, 1, 1.5, 2, 2.49, 2.5, 2.51, 9, 10, 11]
    pool = [s * v for v in (*steps, 10.08, 10.09, 10.091, 10.1, 100, 12345) for s in (1, -1)]
    assert [v for v in pool if accepts(grammar, v) != validator.is_valid(v)] == []


def test_grammars_of_another_dialect_are_unsupported() -> None:
    refusal = COMPILER.compile(LarkSpec('start: "a"'))
    assert isinstance(refusal, GrammarRefusal)
    assert refusal.kind is RefusalKind.UNSUPPORTED_SCHEMA


@pytest.mark.parametrize("pattern", ["(?=a)a", r"\bword", r"(a)\1", r"\p{L}", "(?i)a", "a$b", "((a)*+)"])
def test_what_a_regular_expression_cannot_say_here_is_refused(pattern: str) -> None:
    assert isinstance(COMPILER.compile(RegexSpec(pattern)), GrammarRefusal)


def random_pattern(draw: random.Random, depth: int) -> str:
    def atom() -> str:
        if depth == 0 or draw.random() < 0.5:
            return draw.choice(["a", "b", "[ab]", "[^a]", ".", r"\n"])
        return f"({random_pattern(draw, depth - 1)})"

    def repeated() -> str:
        least = draw.randrange(3)
        bounds = ["", "", "*", "+", "?", f"{{{least}}}", f"{{{least},}}", f"{{{least},{least + draw.randrange(3)}}}"]
        return atom() + draw.choice(bounds)

    return "|".join("".join(repeated() for _ in range(draw.randrange(4))) for _ in range(draw.choice([1, 1, 2])))


def test_regular_expressions_match_what_they_match_elsewhere() -> None:
    draw = random.Random(7)
    words = ["".join(letters) for size in range(5) for letters in itertools.product("ab\n", repeat=size)]
    for pattern in [random_pattern(draw, 2) for _ in range(30)]:
        grammar = COMPILER.compile(RegexSpec(pattern))
        if isinstance(grammar, GrammarRefusal):
            assert not any(re.fullmatch(pattern, word) for word in words)
            continue
        assert [w for w in words if accepts_text(grammar, w) != bool(re.fullmatch(pattern, w))] == [], pattern


@pytest.mark.parametrize(
    "bounds", [(0, 1), (0, 3), (1, 1), (1, 2), (2, 6), (0, 0), (1, 255), (0, 1000), (0, 1001)], ids=str
)
def test_strings_have_as_many_characters_as_is_said(bounds: tuple[int, int]) -> None:
    least, most = bounds
    grammar = compile_schema({"type": "string", "minLength": least, "maxLength": most})
    lengths = [*range(9), 254, 255, 256, 999, 1000, 1001, 1002]
    assert [n for n in lengths if accepts(grammar, "é" * n)] == [n for n in lengths if least <= n <= most]
