"""Schemas and patterns that were written to hurt, through HTTP: answered with 200 or 400, and nobody else notices."""

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.raw_http import Answer, request
from harness.server_thread import ServerThread, wait_until
from harness.server_view import read_metrics
from harness.slow_schema import slow_schema

CHAT = "/v1/chat/completions"
DATA = Path(__file__).parents[1] / "data"
SUITE = json.loads((DATA / "json-schema-test-suite/draft2020-12.json").read_text("utf-8"))
SAMPLE = [json.loads(line) for line in (DATA / "jsonschemabench/sample.jsonl").read_text("utf-8").splitlines()]
LIMIT_MS = 50


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    settings = {"limits__grammar_compile_ms": LIMIT_MS, "grammar__cache_entries": 24}
    with ServerThread("simulated", engine__simulated_model="hash", **settings) as running:
        before = running.look(lambda: running.running.supervisor.engine.statistics().epoch)
        yield running
        assert running.look(lambda: running.running.supervisor.engine.statistics().epoch) == before
        assert running.rest().blocks_used == 0


@pytest.fixture(scope="module")
def patient() -> Iterator[ServerThread]:
    """Whose limit of time is never reached here."""
    with ServerThread("simulated", limits__grammar_compile_ms=60_000) as running:
        yield running
        assert running.rest().num_live == 0


def ask(server: ServerThread, **members: Any) -> Answer:
    body = {"model": server.model, "messages": [{"role": "user", "content": "a"}], "max_tokens": 12, **members}
    return request(server.port, "POST", CHAT, body)


def named(schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}


def check_answered(answer: Answer) -> str | None:
    """Returns the code of a refusal."""
    if answer.status == 200:
        return None
    error = answer.json()["error"]
    assert answer.status == 400, error
    assert error["code"] in {"invalid_schema", "unsupported_schema", "grammar_too_complex"}, error
    return str(error["code"])


PATTERNS = ["(a+)+b", "(x?){5000}x{5000}", "(.{0,999}){9}", "a{1000000}", "((a{99}){99}){99}", "(a|b|ab)*" * 50]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_that_explodes_is_refused_or_held_to(server: ServerThread, pattern: str) -> None:  # SEC-3
    for members in (
        {"structured_outputs": {"regex": pattern}},
        {"structured_outputs": {"grammar": f"start: /{pattern}/"}},
        named({"type": "string", "pattern": f"^{pattern}$"}),
    ):
        check_answered(ask(server, **members))
    assert ask(server).status == 200


def test_others_are_served_while_a_grammar_compiles_beyond_its_limit(server: ServerThread) -> None:  # SEC-3
    grammars = server.running.parts.service.grammars
    assert grammars is not None
    with ThreadPoolExecutor(1) as pool:
        hostile = pool.submit(ask, server, **named(slow_schema(0)))
        wait_until(lambda: server.look(lambda: grammars.accounts().num_overdue) == 1, "it is beyond its limit")
        error = hostile.result(30).json()["error"]
        assert (error["code"], error["limit"]["name"]) == ("grammar_too_complex", "grammar_compile_ms")
        assert error["limit"]["value"] == LIMIT_MS <= error["limit"]["actual"]
        for _ in range(2):
            assert request(server.port, "GET", "/healthz").status == 200
            assert ask(server).status == 200
            assert check_answered(ask(server, structured_outputs={"choice": ["a", "b"]})) is None
        assert server.look(lambda: grammars.accounts().num_overdue) == 1, "all that happened meanwhile"
    wait_until(lambda: server.look(lambda: grammars.accounts().num_pending) == 0, "it ends", 60)


def test_when_every_thread_is_beyond_the_limit_new_schemas_are_told_so(server: ServerThread) -> None:  # SEC-3
    grammars = server.running.parts.service.grammars
    assert grammars is not None
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda number: ask(server, **named(slow_schema(number))), (1, 2)))
    assert [check_answered(answer) for answer in answers] == ["grammar_too_complex"] * 2
    answer = ask(server, **named({"const": "never seen before"}))
    error = answer.json()["error"]
    assert (answer.status, error["code"]) == (503, "no_capacity")
    assert (error["limit"]["name"], error["limit"]["scope"]) == ("grammar_compile_ms", "server")
    assert answer.headers["retry-after"] == "1"
    assert ask(server).status == 200, "what needs no grammar is served"
    wait_until(lambda: server.look(lambda: grammars.accounts().num_pending) == 0, "they end", 60)
    assert check_answered(ask(server, **named({"const": "never seen before"}))) is None


def test_distinct_schemas_leave_no_more_than_the_cache_holds(server: ServerThread) -> None:  # SEC-5
    before = read_metrics(server.admin_port)
    for number in range(60):
        schema = {"const": number} if number % 3 else {"type": f"no type {number}"}
        assert (check_answered(ask(server, **named(schema))) is None) is bool(number % 3)
    after = read_metrics(server.admin_port)
    assert after.value("grammar_cache_entries") <= 24
    assert after.value("grammar_cache_bytes") <= 24 * 1024
    assert after.value("grammar_compiles_pending") == 0
    assert after.since(before, "grammar_cache_evictions_total") >= 60 - 24


def broken_schemas() -> Iterator[Any]:
    draw = random.Random(5)
    wrong: list[Any] = [None, 0, -1, 1.5, "x", [], {}, [None], {"a": None}, True, "#", "(", 10**30]
    for groups in SUITE.values():
        for group in groups[:2]:
            schema = group["schema"]
            if isinstance(schema, dict) and schema:
                yield {**schema, draw.choice(list(schema)): draw.choice(wrong)}


def test_no_schema_of_the_suites_harms_the_engine_and_nor_do_broken_ones(patient: ServerThread) -> None:  # SEC-6
    schemas: list[Any] = [group["schema"] for groups in SUITE.values() for group in groups]
    schemas += [row["schema"] for row in SAMPLE]
    schemas += list(broken_schemas())
    num_enforced = 0
    for schema in schemas[::3]:  # a third of all, to be quick
        members = named(schema) if isinstance(schema, dict) else {"structured_outputs": {"json": json.dumps(schema)}}
        num_enforced += check_answered(ask(patient, **{**members, "max_tokens": 2})) is None
    assert num_enforced > 0.5 * len(schemas) / 3
    assert read_metrics(patient.admin_port).value("engine_restarts_total") == 0
    assert ask(patient).status == 200
