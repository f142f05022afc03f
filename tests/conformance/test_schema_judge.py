"""What keeps a schema, and what a script of the catalogue plays."""

import json
import subprocess
import sys
from typing import Any

import pytest

from mutants.structured import WRONG
from tidegate.conformance.catalog.schemas import ROWS, SchemaRow
from tidegate.conformance.schema_judge import describe_breach


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_text_that_a_script_plays_keeps_its_schema_and_the_mutants_breaks_it(row: SchemaRow) -> None:
    assert describe_breach(row.schema, json.loads(row.right)) is None
    assert describe_breach(row.schema, json.loads(WRONG[row.name])) is not None


BREACHES: tuple[tuple[str, Any, Any], ...] = (
    ("/a", {"properties": {"a": {"type": "integer"}}}, {"a": "1"}),
    ("/a/1", {"properties": {"a": {"items": {"const": 1}}}}, {"a": [1, 2]}),
    ("at /:", {"required": ["a"]}, {}),
    ("/a", {"properties": {"a": {"format": "date"}}}, {"a": "2027-02-30"}),
    ("/a", {"properties": {"a": {"type": "integer"}}}, {"a": 1.5}),
)


@pytest.mark.parametrize(("where", "schema", "value"), BREACHES, ids=range(len(BREACHES)))
def test_a_breach_is_told_with_its_place(where: str, schema: Any, value: Any) -> None:
    said = describe_breach(schema, value)
    assert said is not None
    assert where in said


def test_the_server_never_loads_the_validator() -> None:
    code = "import sys, tidegate.cli.serve_command, tidegate.http.app; sys.exit('jsonschema_rs' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
