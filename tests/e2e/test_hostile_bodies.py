"""Bodies that have brought servers down: counts without bound, nesting, broken JSON, bytes that are not text.

Sources: published advisories; tests/data/json-parsing; tests/data/utf8. Each is answered with a 400, before any work.
"""

import base64
import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.case_body import nested
from harness.raw_http import Answer, request
from harness.server_thread import ServerThread

DATA = Path(__file__).parent.parent / "data"
CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
TOKENIZE, DETOKENIZE = "/v1/tokenize", "/v1/detokenize"
ROUTES = (CHAT, COMPLETION, TOKENIZE, DETOKENIZE)
ALLOWANCE_KB = 64 * 1024
"""What a refusal may add to the greatest memory of the process: room for a body of a few megabytes, no more."""

JSON_ROWS = [json.loads(line) for line in (DATA / "json-parsing/jsontestsuite.jsonl").read_text("utf-8").splitlines()]
UTF8 = json.loads((DATA / "utf8/cases.json").read_text("utf-8"))
NOT_UTF8 = [row for row in UTF8["invalid_byte_sequences"] if row["in_request_body"] == "400"]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("simulated") as running:
        yield running


@pytest.fixture(autouse=True)
def _nothing_reaches_the_engine(server: ServerThread) -> Iterator[None]:
    """Every body here is refused, so the engine makes no step; and afterwards a normal request works."""
    before = num_steps(server)
    yield
    assert num_steps(server) == before
    body = {"model": server.model, "messages": [{"role": "user", "content": "a"}], "max_tokens": 1}
    assert request(server.port, "POST", CHAT, body).status == 200
    assert server.baseline().blocks_used == 0


def num_steps(server: ServerThread) -> int:
    num: int = server.look(lambda: server.running.supervisor.engine.statistics().gauges.num_steps)
    return num


def check_refusal(answer: Answer, param: str | None = None, limit: str | None = None) -> dict[str, Any]:
    assert answer.status == 400, answer.body
    assert answer.headers["x-should-retry"] == "false"
    error: dict[str, Any] = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert len(error["message"].encode()) <= 2048
    if param is not None:
        assert error["param"] == param
    if limit is not None:
        assert error["limit"]["name"] == limit
    return error


def peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("text", ["1000000000", "129", "0", "-1", "1.5", '"2"', "true", "[]"])
@pytest.mark.parametrize("route", [CHAT, COMPLETION])
def test_a_number_of_choices_beyond_the_limit_costs_nothing(
    server: ServerThread, route: str, text: str
) -> None:  # SEC-1
    before = peak_kb()
    prompt = '"messages": [{"role": "user", "content": "a"}]' if route == CHAT else '"prompt": "a"'
    body = f'{{"model": "{server.model}", {prompt}, "n": {text}}}'
    check_refusal(request(server.port, "POST", route, body.encode()), param="n")
    assert peak_kb() - before < ALLOWANCE_KB


@pytest.mark.parametrize(
    ("prompt", "n", "param", "limit"),
    [
        (["a"] * 100_000, None, "prompt", "prompts"),
        (["a"] * 257, None, "prompt", "prompts"),
        ([[1]] * 100_000, None, "prompt", "prompts"),
        (["a"] * 65, 2, "n", "choices"),
        (["a"] * 2, 65, "n", "choices"),
        (["a"] * 256, 128, "n", "choices"),
    ],
)
def test_a_list_of_prompts_does_not_fan_out(  # SEC-2
    server: ServerThread, prompt: list[Any], n: int | None, param: str, limit: str
) -> None:
    before = peak_kb()
    body = {"model": server.model, "prompt": prompt, "n": n, "max_tokens": 1}
    error = check_refusal(request(server.port, "POST", COMPLETION, body), param, limit)
    assert error["limit"]["actual"] > error["limit"]["value"]
    assert peak_kb() - before < ALLOWANCE_KB


NESTED_PLACES = {
    "messages": (CHAT, '{"model": "$M", "messages": $N}'),
    "content": (CHAT, '{"model": "$M", "messages": [{"role": "user", "content": $N}]}'),
    "tool parameters": (
        CHAT,
        '{"model": "$M", "messages": [{"role": "user", "content": "a"}], '
        '"tools": [{"type": "function", "function": {"name": "f", "parameters": $N}}]}',
    ),
    "schema": (
        CHAT,
        '{"model": "$M", "messages": [{"role": "user", "content": "a"}], '
        '"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": $N}}}',
    ),
    "structured outputs": (
        CHAT,
        '{"model": "$M", "messages": [{"role": "user", "content": "a"}], "structured_outputs": {"json": $N}}',
    ),
    "template variables": (
        CHAT,
        '{"model": "$M", "messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"x": $N}}',
    ),
    "metadata": (CHAT, '{"model": "$M", "messages": [{"role": "user", "content": "a"}], "metadata": $N}'),
    "a field nobody knows": (CHAT, '{"model": "$M", "messages": [{"role": "user", "content": "a"}], "x_y": $N}'),
    "a script": (CHAT, '{"model": "$M", "messages": [{"role": "user", "content": "a"}], "x_script": $N}'),
    "a prompt": (COMPLETION, '{"model": "$M", "prompt": $N}'),
    "messages to tokenize": (TOKENIZE, '{"model": "$M", "messages": $N}'),
    "tokens to detokenize": (DETOKENIZE, '{"model": "$M", "tokens": $N}'),
    "the whole body": (CHAT, "$N"),
}


@pytest.mark.parametrize("count", [129, 10_000, 1_000_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("place", NESTED_PLACES)
def test_nesting_beyond_the_limit_is_refused_in_every_place(  # SEC-4
    server: ServerThread, place: str, opening: str, count: int
) -> None:
    route, text = NESTED_PLACES[place]
    inner = nested(opening, count) if opening == "[" else opening * count + "1" + "}" * count
    body = text.replace("$M", server.model).replace("$N", inner).encode()
    error = check_refusal(request(server.port, "POST", route, body), limit="json_depth")
    assert error["limit"]["value"] == 128
    assert error["limit"]["actual"] >= count


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
@pytest.mark.parametrize("route", ROUTES)
def test_nesting_that_is_never_closed_is_refused(server: ServerThread, route: str, opening: str) -> None:  # SEC-4
    check_refusal(request(server.port, "POST", route, opening.encode() * 500_000))


@pytest.mark.parametrize("route", ROUTES)
def test_no_text_of_the_json_test_suite_is_anything_but_a_400(server: ServerThread, route: str) -> None:
    """None of the texts is a request, so those that are JSON are refused too. The first fault is the one named."""
    assert len(JSON_ROWS) == 318
    for row in JSON_ROWS:
        error = check_refusal(request(server.port, "POST", route, base64.b64decode(row["b64"])))
        if row["expect"] == "reject" and error["code"] != "invalid_json":
            assert error.get("limit") or error["code"] == "missing_field", row["name"]


@pytest.mark.parametrize("row", NOT_UTF8, ids=lambda row: row["id"])
@pytest.mark.parametrize("route", ROUTES)
def test_bytes_that_are_not_utf8_are_refused_wherever_they_stand(
    server: ServerThread, route: str, row: dict[str, Any]
) -> None:
    raw = bytes.fromhex(row["hex"])
    model = server.model.encode()
    member = {CHAT: b'"messages": [{"role": "user", "content": "%b"}]', TOKENIZE: b'"text": "%b"'}.get(
        route, b'"prompt": "%b"'
    )
    for body in (b'{"model": "' + model + b'", ' + member % raw + b"}", b'{"nobody": "%b"}' % raw, raw):
        error = check_refusal(request(server.port, "POST", route, body))
        assert error["code"] == "invalid_json"


@pytest.mark.parametrize("row", [row for row in UTF8["json_escapes"] if "text" not in row], ids=lambda row: row["id"])
def test_half_of_a_surrogate_pair_is_refused(server: ServerThread, row: dict[str, Any]) -> None:
    body = f'{{"model": "{server.model}", "messages": [{{"role": "user", "content": {row["json"]}}}]}}'
    assert check_refusal(request(server.port, "POST", CHAT, body.encode()))["code"] == "invalid_json"


def test_a_byte_order_mark_is_refused(server: ServerThread) -> None:
    body = json.dumps({"model": server.model, "messages": [{"role": "user", "content": "a"}]})
    check_refusal(request(server.port, "POST", CHAT, b"\xef\xbb\xbf" + body.encode()))
    check_refusal(request(server.port, "POST", CHAT, body.encode("utf-16")))


@pytest.mark.parametrize(
    "field", ["guided_json", "guided_regex", "guided_choice", "guided_grammar", "json_schema", "regex", "ebnf"]
)
def test_a_constraint_under_another_servers_name_is_never_dropped(server: ServerThread, field: str) -> None:
    body = {"model": server.model, "messages": [{"role": "user", "content": "a"}], field: {"type": "object"}}
    assert "structured_outputs" in check_refusal(request(server.port, "POST", CHAT, body), field)["message"]
