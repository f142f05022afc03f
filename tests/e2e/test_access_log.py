"""The access log of a whole server: one line of JSON for each request, whatever its caller writes."""

import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from harness.faults import LONG_S, Route, ask, hex_pieces
from harness.raw_http import RawClient, request
from harness.server_thread import ServerThread, wait_until

pytestmark = pytest.mark.process

CHAT = Route.CHAT.value
SCRIPT = {"pieces": hex_pieces("a", "b"), "finish": "eos"}
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SECRET = "the secret of the prompt"
HOSTILE = 'x\n{"event":"request ended"}\r\n\x1b[2J\u202egnp\u2066\u2028\u0085\x00'


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted") as running:
        yield running


def take_lines(server: ServerThread, num_lines: int) -> list[dict[str, Any]]:
    """Waits for so many access lines, and checks that every line of the log is one record of plain characters."""

    def count() -> bool:
        return server.look(server.log.getvalue).count('"event":"request ended"') >= num_lines

    wait_until(count, f"{num_lines} lines")
    lines = server.take_log().split("\n")[:-1]
    assert all(line.isprintable() for line in lines)
    return [record for record in map(json.loads, lines) if record["event"] == "request ended"]


def test_each_request_on_any_route_has_one_line(server: ServerThread) -> None:
    server.take_log()
    request(server.port, "POST", CHAT, ask(Route.CHAT, SCRIPT), {"X-Request-Id": "whole"})
    request(server.port, "POST", CHAT, ask(Route.CHAT, SCRIPT, stream=True), {"X-Stainless-Retry-Count": "2"})
    request(server.port, "POST", CHAT, ask(Route.CHAT, SCRIPT, max_tokens=-1))
    request(server.port, "POST", "/v1/tokenize", {"model": "scripted", "prompt": SECRET})
    request(server.port, "GET", "/v1/models/org%2Fsecret")
    request(server.port, "GET", f"/nope?{SECRET.replace(' ', '+')}")
    request(server.port, "HEAD", "/healthz")
    request(server.admin_port, "GET", "/metrics")
    records = take_lines(server, 8)
    told = [(r["route"], r["method"], r["status"], r["outcome"], r.get("code")) for r in records]
    assert sorted(told, key=str) == sorted(
        [
            (CHAT, "POST", 200, "stop", None),
            (CHAT, "POST", 200, "stop", None),
            (CHAT, "POST", 400, "error", "invalid_value"),
            ("/v1/tokenize", "POST", 200, "ok", None),
            ("/v1/models/{id}", "GET", 404, "error", "model_not_found"),
            ("unmatched", "GET", 404, "error", "route_not_found"),
            ("/healthz", "HEAD", 200, "ok", None),
            ("/metrics", "GET", 200, "ok", None),
        ],
        key=str,
    )
    whole = next(record for record in records if record["wire_id"] == "whole")
    assert whole["model"] == "scripted"
    assert "key_name" not in whole, "no keys are configured"
    assert whole["peer"].startswith("127.0.0.1:")
    assert (whole["num_completion_tokens"], whole["is_stream"], whole["num_retries"]) == (2, False, 0)
    assert 0 <= whole["queue_s"] <= whole["first_token_s"] <= whole["duration_s"]
    assert [record["num_retries"] for record in records if record.get("is_stream")] == [2]
    assert "secret" not in json.dumps(records)


def test_prompts_answers_and_keys_are_not_in_the_log(server: ServerThread) -> None:
    server.take_log()
    key = "sk-abcdefghijklmnopqrstuvwxyz"
    script = {"pieces": hex_pieces("the answer of the engine")}
    body = ask(Route.CHAT, script, messages=[{"role": "user", "content": SECRET}])
    headers = {"Authorization": f"Bearer {key}", "User-Agent": f"Bearer {key}", "Cookie": key, "Idempotency-Key": key}
    with RawClient(server.port) as client:
        client.post(CHAT, body, headers)
        client.read_answer()
    wait_until(lambda: '"event":"request ended"' in server.look(server.log.getvalue), "it is logged")
    log = server.take_log()
    assert SECRET not in log
    assert "the answer" not in log
    assert "abcdefghijkl" not in log


@pytest.mark.parametrize("field", ["model", "user", "safety_identifier", "prompt_cache_key", "messages"])
def test_no_field_of_a_caller_forges_a_line(server: ServerThread, field: str) -> None:  # SEC-29
    server.take_log()
    value: Any = HOSTILE if field != "messages" else [{"role": HOSTILE, "content": HOSTILE, "name": HOSTILE}]
    for is_stream in (True, False):
        answer = request(server.port, "POST", CHAT, ask(Route.CHAT, SCRIPT, stream=is_stream, **{field: value}))
        assert answer.status in (200, 400, 404)
    assert len(take_lines(server, 2)) == 2


@pytest.mark.parametrize(
    "given",
    ["a\tb", "x" * 10_240, "127.0.0.1:8000", "tcp://host:1", "id\x1b[31m", "\u202e", "a b", ""],
    ids=["tab", "10 KB", "host:port", "url", "colour", "bidi", "blank", "empty"],
)
def test_an_id_that_is_none_is_replaced_in_answer_and_log(server: ServerThread, given: str) -> None:  # SEC-19 ERR-3
    server.take_log()
    head = f"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: {given}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", server.port), 30) as sock:
        sock.sendall(head)
        answer = b""
        while data := sock.recv(65536):
            answer += data
    if answer.startswith(b"HTTP/1.1 400"):
        return  # the HTTP server itself refuses it
    (record,) = take_lines(server, 1)
    assert record["wire_id"].startswith("req_")
    assert f"x-request-id: {record['wire_id']}".encode() in answer.lower() or record["wire_id"].encode() in answer
    assert (given == "" or given.encode() not in answer) or len(given) < 4


@pytest.mark.parametrize(
    ("given", "is_taken"),
    [(f"00-{TRACE}-{SPAN}-01", True), (f"00-{TRACE.upper()}-{SPAN}-01", False), ("x" * 4000, False), (None, False)],
    ids=["well formed", "capitals", "long", "absent"],
)
def test_each_line_names_its_trace(server: ServerThread, given: str | None, is_taken: bool) -> None:
    server.take_log()
    headers = {} if given is None else {"traceparent": given, "tracestate": "a=1,,=,"}
    for route, body in ((CHAT, ask(Route.CHAT, SCRIPT)), (CHAT, {"model": 1}), ("/nope", {})):
        request(server.port, "POST", route, body, headers)
    request(server.admin_port, "GET", "/healthz", headers=headers)
    records = take_lines(server, 4)
    ids = {record["trace_id"] for record in records}
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in ids)
    assert all(re.fullmatch("[0-9a-f]{16}", record["span_id"]) for record in records)
    if is_taken:
        assert ids == {TRACE}
        assert {record["span_id"] for record in records} == {SPAN}
    else:
        assert len(ids) == 4
        assert TRACE not in ids


def test_a_long_header_is_cut(server: ServerThread) -> None:  # OVL-8
    server.take_log()
    request(server.port, "GET", "/healthz", headers={"User-Agent": "a" * 5000})
    [record] = take_lines(server, 1)
    assert record["user_agent"] == "a" * 200


def test_an_id_with_a_line_break_is_two_headers_and_never_one_id(server: ServerThread) -> None:  # SEC-19
    server.take_log()
    answer = request(server.port, "GET", "/v1/models", headers={"X-Request-Id": "ok\r\nX-Injected: y"})
    assert answer.headers["x-request-id"] == "ok"
    assert "x-injected" not in answer.headers
    assert [record["wire_id"] for record in take_lines(server, 1)] == ["ok"]


def test_who_leaves_and_who_is_refused_have_their_line_too(server: ServerThread) -> None:
    server.take_log()
    with RawClient(server.port) as client:
        slow = {"pieces": hex_pieces("a", "b"), "delays_s": [0.0, LONG_S]}
        client.post(CHAT, ask(Route.CHAT, slow, stream=True), {"X-Request-Id": "leaves"})
        client.read_head()
    (left,) = take_lines(server, 1)
    assert (left["wire_id"], left["outcome"], left["status"]) == ("leaves", "client_gone", 200)
    request(server.port, "POST", CHAT, b"{", {"X-Request-Id": "refused"})
    (refused,) = take_lines(server, 1)
    assert (refused["wire_id"], refused["status"], refused["code"]) == ("refused", 400, "invalid_json")


def test_the_access_log_can_be_switched_off() -> None:
    with ServerThread("scripted", log__access=False) as quiet:
        request(quiet.port, "POST", CHAT, ask(Route.CHAT, SCRIPT))
        request(quiet.port, "GET", "/nope")
        assert "request ended" not in quiet.take_log()
