"""The OpenAPI document is whole, current, and about the routes that there are; its examples work."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from click.testing import CliRunner

from harness.event_stream import read_stream
from harness.raw_http import request
from harness.server_thread import ServerThread
from tidegate.cli.main import cli
from tidegate.contract.error_table import ERROR_TABLE
from tidegate.contract.examples import request_examples
from tidegate.contract.json_schema import request_components
from tidegate.contract.openapi import openapi_document
from tidegate.contract.operations import OPERATIONS
from tidegate.http.routes_api import OPEN_API_PATHS
from tidegate.serving.header_rules import NOT_SERVED

DOCUMENT = openapi_document()
PUBLISHED = Path(__file__).parents[2] / "docs" / "openapi.json"
EXAMPLES = [
    pytest.param(path, body, id=f"{path}-{name}")
    for path, bodies in request_examples("scripted").items()
    for name, body in bodies.items()
]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted") as running:
        yield running


def references(node: Any) -> Iterator[str]:
    """Every `$ref` below a node."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_the_published_document_is_the_codes() -> None:
    assert json.loads(PUBLISHED.read_text("utf-8")) == DOCUMENT, "run: tidegate openapi --output docs/openapi.json"


def test_every_reference_leads_somewhere_and_every_component_is_used() -> None:
    found = set(references(DOCUMENT))
    parts = DOCUMENT["components"]
    known = {f"#/components/{kind}/{name}" for kind in parts for name in parts[kind] if kind != "securitySchemes"}
    assert found <= known
    assert {one for one in known - found if not one.startswith("#/components/headers")} == set()


def test_every_schema_is_a_json_schema() -> None:
    for name, schema in DOCUMENT["components"]["schemas"].items():
        jsonschema_rs.meta.validate(schema), name


def test_its_paths_are_the_routes_that_are_served(server: ServerThread) -> None:
    app: Any = server.running.parts.public_app
    served = {
        (method, pattern)
        for pattern, methods in app.router.patterns.items()
        for method in methods
        if method not in ("HEAD", "OPTIONS")
    }
    assert served == {(one.method, one.path) for one in OPERATIONS}
    assert {one.path.encode() for one in OPERATIONS if not one.needs_key} == OPEN_API_PATHS


def test_every_status_of_the_error_table_is_documented_with_its_codes() -> None:
    told = {status for one in OPERATIONS for status in one.errors}
    assert told == {row.status for row in ERROR_TABLE.values()}
    for row in ERROR_TABLE.values():
        answer = DOCUMENT["components"]["responses"][f"Error{row.status}"]
        assert f"`{row.code}`" in answer["description"]
        assert {"X-Request-Id", "Tidegate-Contract", "X-Should-Retry"} <= answer["headers"].keys()


def test_every_request_header_that_may_be_refused_is_documented() -> None:
    documented = {name.lower() for name in DOCUMENT["components"]["parameters"]}
    assert NOT_SERVED.keys() <= documented


def test_no_text_speaks_of_the_inside() -> None:
    text = json.dumps(DOCUMENT)
    assert ".py" not in text
    assert "msgspec" not in text


def test_patterns_are_those_of_the_standard_and_defaults_of_null_are_left_out() -> None:
    text = json.dumps(request_components([one.request for one in OPERATIONS if one.request is not None]))
    assert r"\\Z" not in text
    assert '"default": null' not in text


@pytest.mark.parametrize(("path", "body"), EXAMPLES)
def test_every_example_is_answered(server: ServerThread, path: str, body: dict[str, Any]) -> None:
    answer = request(server.port, "POST", path, body)
    assert answer.status == 200, answer.body
    if body.get("stream"):
        told = read_stream(answer.body)
        assert (told.findings, told.num_done, told.errors) == ([], 1, [])


def test_the_command_writes_what_it_prints(tmp_path: Path) -> None:
    printed = CliRunner().invoke(cli, ["openapi"])
    assert printed.exit_code == 0
    assert json.loads(printed.output) == DOCUMENT
    file = tmp_path / "contract.json"
    assert CliRunner().invoke(cli, ["openapi", "--document", "contract", "--output", str(file)]).exit_code == 0
    assert file.read_text("utf-8") == (PUBLISHED.parent / "contract.schema.json").read_text("utf-8")
    assert [one.name for one in tmp_path.iterdir()] == ["contract.json"]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["openapi", "--output", str(tmp_path / "no" / "where.json")])
    assert result.exit_code == 1
    assert "cannot be written" in result.output
