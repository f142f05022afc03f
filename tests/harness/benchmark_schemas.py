"""Schemas of jsonschemabench that a small model is asked to fill: which ones, and whether what it wrote is right."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs

from tidegate.grammar.llguidance.llguidance_compiler import LlguidanceCompiler
from tidegate.grammar.matcher import TokenTable
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.grammar_spec import JsonSchemaSpec

SAMPLE = Path(__file__).parents[1] / "data/jsonschemabench/sample.jsonl"
HARD = ("Synthesized", "Handwritten")
"""Families made to be hard; schemas of the others come from practice."""
_EOS = 256
_COMPILER = LlguidanceCompiler(TokenTable([bytes([i]) for i in range(256)] + [b"<eos>"], frozenset({_EOS}), (_EOS,)))


@dataclass(frozen=True, slots=True)
class BenchmarkSchema:
    name: str
    schema: Any


def enforced_schemas(count: int, file: Path = SAMPLE) -> list[BenchmarkSchema]:
    """Returns that many schemas from practice that are enforced, taken evenly from all families of the file."""
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    families: dict[str, list[Any]] = {}
    for row in rows:
        if row["family"] not in HARD:
            families.setdefault(row["family"], []).append(row)
    found: list[BenchmarkSchema] = []
    for turn in range(len(rows)):
        for family in families.values():
            if turn < len(family) and len(found) < count and _is_enforced(family[turn]["schema"]):
                found.append(BenchmarkSchema(family[turn]["id"], family[turn]["schema"]))
    return found


def _is_enforced(schema: Any) -> bool:
    return not isinstance(_COMPILER.compile(JsonSchemaSpec(json.dumps(schema).encode())), GrammarRefusal)


def judge(schema: Any, text: str, finish: str) -> str | None:
    """Returns what is wrong with a text that was written under a schema; None when it is right.

    Whole: a value that a validator accepts. Cut by the budget: the beginning of one.
    """
    if finish == "stop":
        try:
            value = json.loads(text)
        except ValueError as error:
            return f"not JSON: {error}"
        errors = list(jsonschema_rs.validator_for(schema, validate_formats=True).iter_errors(value))
        return str(errors[0].message)[:200] if errors else None
    if finish != "length":
        return f"ended as {finish}"
    grammar = _COMPILER.compile(JsonSchemaSpec(json.dumps(schema).encode()))
    if isinstance(grammar, GrammarRefusal):
        return grammar.message
    data = text.removesuffix("�").encode()
    return None if grammar.make_matcher().legal_prefix(list(data)) == len(data) else "no beginning of a valid value"
