"""Schemas of two suites as `response_format`: the server answers what its backend enforces, and refuses the rest."""

import json
from pathlib import Path
from typing import Any

from harness.raw_http import request
from harness.schema_judge import byte_compiler
from harness.server_thread import ServerThread
from tidegate.grammar.refusal import GrammarRefusal
from tidegate.inference.grammar_spec import JsonSchemaSpec

DATA = Path(__file__).parents[1] / "data"
NUM_EACH = 24


def sample() -> list[Any]:
    """Returns schemas taken evenly from both files."""
    lines = (DATA / "jsonschemabench/sample.jsonl").read_text("utf-8").splitlines()
    files = json.loads((DATA / "json-schema-test-suite/draft2020-12.json").read_text("utf-8")).values()
    both = [json.loads(line)["schema"] for line in lines], [group["schema"] for groups in files for group in groups]
    return [schema for schemas in both for schema in schemas[:: len(schemas) // NUM_EACH]]


def test_schemas_of_the_suites_are_answered_or_refused_with_code_and_field_and_the_engine_stands() -> None:
    compiler, _ = byte_compiler()
    counts = {200: 0, 400: 0}
    with ServerThread("simulated", engine__simulated_model="hash", limits__grammar_compile_ms=30_000) as server:
        body = {"model": server.model, "max_tokens": 4, "messages": [{"role": "user", "content": "a"}]}
        for schema in sample():
            wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
            answer = request(server.port, "POST", "/v1/chat/completions", {**body, "response_format": wanted})
            alone = compiler.compile(JsonSchemaSpec(json.dumps(schema).encode()))
            assert answer.status == (400 if isinstance(alone, GrammarRefusal) else 200), (schema, answer.json())
            counts[answer.status] += 1
            if answer.status == 400:
                error = answer.json()["error"]
                assert error["code"] in ("unsupported_schema", "invalid_schema", "grammar_too_complex")
                assert error["param"].startswith("response_format")
        engine = request(server.admin_port, "GET", "/admin/v1/engine").json()
    assert (engine["ready"], engine["restarts"], engine["gauges"]["num_constrained"]) == (True, 0, 0)
    assert counts[200] > counts[400] > 0
