"""Schemas that others wrote: each is enforced as its instances say, or refused; none is weaker than it says.

All of JSON-Schema-Test-Suite, and a part of jsonschemabench; `bench/schema_coverage.py` runs all of both.
"""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness.schema_judge import accepts, byte_compiler, finite_value, random_text
from tidegate.grammar.json_text import UNWRITABLE
from tidegate.grammar.refusal import GrammarRefusal, RefusalKind
from tidegate.inference.grammar_spec import JsonSchemaSpec

DATA = Path(__file__).parents[1] / "data"
SUITE: dict[str, list[dict[str, Any]]] = json.loads(
    (DATA / "json-schema-test-suite/draft2020-12.json").read_text("utf-8")
)
SAMPLE = [json.loads(line) for line in (DATA / "jsonschemabench/sample.jsonl").read_text("utf-8").splitlines()]
FAMILIES = sorted({row["family"] for row in SAMPLE})
COMPILER, WORDS = byte_compiler()

REMARKS_TO_THE_SUITE = ("format.json", "optional/format/")
"""There `format` is a remark, or allows what `grammar/schema/formats.py` says is not written."""


def compile_schema(schema: Any) -> Any:
    return COMPILER.compile(JsonSchemaSpec(json.dumps(schema).encode()))


def is_unwritable(value: Any) -> bool:
    return (
        UNWRITABLE.search(json.dumps(value, ensure_ascii=False).encode().decode("unicode_escape", "ignore")) is not None
    )


@pytest.mark.parametrize("file", SUITE)
def test_the_official_suite_is_enforced_or_refused(file: str) -> None:
    weaker: list[Any] = []
    stricter: list[Any] = []
    for group in SUITE[file]:
        grammar = compile_schema(group["schema"])
        if isinstance(grammar, GrammarRefusal):
            continue
        for test in group["tests"]:
            is_accepted = accepts(grammar, test["data"], group["schema"])
            if is_accepted and not test["valid"]:
                weaker.append((group["description"], test["data"]))
            if test["valid"] and not is_accepted and not is_unwritable(test["data"]):
                stricter.append((group["description"], test["data"]))
    assert weaker == []
    assert stricter == [] or file.startswith(REMARKS_TO_THE_SUITE)


def test_most_of_the_official_suite_is_enforced() -> None:
    grammars = [compile_schema(group["schema"]) for groups in SUITE.values() for group in groups]
    enforced = [grammar for grammar in grammars if not isinstance(grammar, GrammarRefusal)]
    assert len(enforced) >= 329


@pytest.mark.parametrize("family", FAMILIES)
def test_schemas_from_practice_are_enforced_or_refused(family: str) -> None:
    for row in (row for row in SAMPLE if row["family"] == family):
        grammar = compile_schema(row["schema"])
        if isinstance(grammar, GrammarRefusal):
            assert grammar.kind is RefusalKind.UNSUPPORTED_SCHEMA or "no value" in grammar.message
            assert grammar.path is not None or "no value" in grammar.message or family in ("Handwritten", "Synthesized")
            continue
        for test in row["tests"]:
            assert accepts(grammar, test["data"], row["schema"]) is test["valid"], (row["id"], test["data"])
        check_written(grammar, row["schema"], row["id"])


def check_written(grammar: Any, schema: Any, name: str) -> None:
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    text = random_text(COMPILER, WORDS, grammar, seed=1)
    value = None if text is None else finite_value(text)
    assert value is None or validator.is_valid(value), (name, text)


def test_nearly_all_schemas_from_practice_are_enforced() -> None:
    rows = [row for row in SAMPLE if row["family"] not in ("Synthesized", "Handwritten")]
    refused = [row["id"] for row in rows if isinstance(compile_schema(row["schema"]), GrammarRefusal)]
    assert len(refused) <= 0.03 * len(rows), refused
