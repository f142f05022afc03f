"""A deadline ends a request wherever it is: one answer that says so, one abort, and nothing left."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.faults import CELLS, LONG_S, Caller, Cell, Phase, Route, ask, hex_pieces
from harness.raw_http import Answer, request
from harness.server_thread import ServerThread
from harness.server_view import Metrics, ended_requests, engine_state, read_metrics

pytestmark = pytest.mark.process

CASES = Path(__file__).parent.parent / "data" / "cases" / "cases.jsonl"
DEADLINE_MS = 2000
FIRST_TOKEN_MS = 1000
AFTER_FIRST_TOKEN_S = 1.5
SHORT_MS = 200
ENDLESS = {"pieces": hex_pieces("a", "b", "c"), "repeat": 100_000, "delays_s": [0.01], "finish": "eos"}
STUCK = {"pieces": hex_pieces("a"), "queue_delay_s": LONG_S}
cells = pytest.mark.parametrize("cell", CELLS, ids=[cell.name for cell in CELLS])


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted") as running:
        request(running.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("x")}))
        yield running


@dataclass(slots=True)
class Round:
    """One request of every cell, all at once, under the same deadline."""

    callers: dict[Cell, Caller] = field(default_factory=dict)
    answers: dict[Cell, Answer] = field(default_factory=dict)
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    counted: Metrics | None = None
    now: Metrics | None = None

    def play(self, server: ServerThread, headers: dict[str, str], pause_s: float) -> "Round":
        before = server.rest()
        server.take_log()
        self.counted = read_metrics(server.admin_port)
        for cell in CELLS:
            self.callers[cell] = Caller(server.port, cell, pause_s=pause_s, headers=headers)
        for caller in self.callers.values():
            caller.read_before()
        for cell, caller in self.callers.items():
            self.answers[cell] = caller.read_rest()
            caller.client.close()
        server.wait_back(before)
        self.now = read_metrics(server.admin_port)
        self.ended = ended_requests(server.take_log())
        return self

    def grown(self, name: str, **labels: str) -> float:
        assert self.now is not None
        assert self.counted is not None
        return self.now.since(self.counted, name, **labels)


@pytest.fixture(scope="module")
def passed(server: ServerThread) -> Round:
    return Round().play(server, {"X-Deadline-Ms": str(DEADLINE_MS)}, LONG_S)


@pytest.fixture(scope="module")
def first_token(server: ServerThread) -> Round:
    return Round().play(server, {"X-First-Token-Deadline-Ms": str(FIRST_TOKEN_MS)}, AFTER_FIRST_TOKEN_S)


def check_expired(cell: Cell, played: Round, name: str, limit_ms: int) -> None:
    """A status where nothing had been sent, else an event and a cut; the same error in both."""
    answer = played.answers[cell]
    if cell.text_before:
        stream = played.callers[cell].stream()
        assert answer.status == 200
        assert stream.findings == []
        assert (len(stream.errors), stream.num_done, stream.finish_reasons()) == (1, 0, [])
        assert not answer.is_complete
        assert played.callers[cell].text() == cell.text_before
        error = stream.errors[0]
    else:
        assert (answer.status, answer.is_complete) == (504, True)
        assert answer.headers["x-should-retry"] == "false"
        assert "retry-after" not in answer.headers
        error = answer.json()["error"]
    assert (error["code"], error["type"], error["param"]) == ("deadline_exceeded", "timeout_error", None)
    assert (error["limit"]["name"], error["limit"]["value"], error["limit"]["scope"]) == (name, limit_ms, "request")
    assert error["limit"]["actual"] >= limit_ms
    ended = played.ended[cell.name]
    assert (ended["outcome"], ended["code"], ended["status"]) == ("deadline", "deadline_exceeded", answer.status)
    assert ended["duration_s"] * 1000 >= limit_ms - 1


@cells
def test_a_deadline_ends_a_request_in_every_phase(passed: Round, cell: Cell) -> None:  # DL-1
    check_expired(cell, passed, "deadline_ms", DEADLINE_MS)


def test_each_request_that_its_deadline_ended_is_aborted_and_counted_once(passed: Round) -> None:  # DL-1
    assert passed.grown("aborts_total") == passed.grown("aborts_total", cause="deadline") == len(CELLS)
    assert passed.grown("request_errors_total", code="deadline_exceeded") == len(CELLS)
    assert passed.grown("requests_received_total") == len(CELLS)
    assert passed.grown("requests_refused_total") == passed.grown("request_success_total") == 0
    assert passed.grown("stale_outputs_dropped_total") == 0


@cells
def test_the_deadline_for_the_first_token_matters_only_until_it_comes(first_token: Round, cell: Cell) -> None:  # DL-1
    if cell.phase in (Phase.QUEUED, Phase.PREFILL):
        check_expired(cell, first_token, "first_token_deadline_ms", FIRST_TOKEN_MS)
        return
    answer = first_token.answers[cell]
    assert (answer.status, answer.is_complete) == (200, True)
    assert first_token.ended[cell.name]["outcome"] == "stop"
    if cell.is_stream:
        assert first_token.callers[cell].text() == cell.text
        assert first_token.callers[cell].stream().num_done == 1


WIDE = {
    "one choice": (Route.CHAT, {}),
    "three choices": (Route.CHAT, {"n": 3}),
    "a batch": (Route.COMPLETIONS, {"prompt": ["a", "b"]}),
    "a batch with choices": (Route.COMPLETIONS, {"prompt": ["a", "b"], "n": 2}),
}


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", WIDE)
def test_all_choices_of_all_prompts_end_together(server: ServerThread, name: str, is_stream: bool) -> None:  # DL-1
    route, fields = WIDE[name]
    before, counted = server.rest(), read_metrics(server.admin_port)
    body = ask(route, ENDLESS, stream=is_stream, deadline_ms=SHORT_MS, **fields)
    answer = request(server.port, "POST", route.value, body)
    if is_stream:
        stream = read_stream(answer.body)
        assert [error["code"] for error in stream.errors] == ["deadline_exceeded"]
        assert (stream.num_done, answer.is_complete) == (0, False)
    else:
        assert (answer.status, answer.json()["error"]["code"]) == (504, "deadline_exceeded")
    server.wait_back(before)
    now = read_metrics(server.admin_port)
    assert now.since(counted, "aborts_total") == now.since(counted, "aborts_total", cause="deadline") == 1


@pytest.mark.parametrize(("header_ms", "field_ms"), [(SHORT_MS, 60_000), (60_000, SHORT_MS)])
def test_the_least_of_header_and_field_counts(server: ServerThread, header_ms: int, field_ms: int) -> None:  # DL-1
    body = ask(Route.CHAT, STUCK, deadline_ms=field_ms)
    answer = request(server.port, "POST", Route.CHAT.value, body, {"X-Deadline-Ms": str(header_ms)})
    assert answer.json()["error"]["limit"]["value"] == SHORT_MS


def test_a_deadline_that_is_far_away_changes_nothing(server: ServerThread) -> None:  # DL-1
    body = ask(Route.CHAT, {"pieces": hex_pieces("well")}, deadline_ms=2**53 - 1, first_token_deadline_ms=2**53 - 1)
    answer = request(server.port, "POST", Route.CHAT.value, body)
    assert answer.json()["choices"][0]["message"]["content"] == "well"


@pytest.fixture(scope="module")
def bounded() -> Iterator[ServerThread]:
    """A server with a limit of its own, that sends heads and heartbeats long before it."""
    with ServerThread(
        "scripted", deadlines__max_ms=500, server__status_hold_s=0.05, server__heartbeat_s=0.05
    ) as running:
        yield running


def _cases() -> Iterator[dict[str, Any]]:
    for line in CASES.read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["id"] in ("C165-1", "C166-1"):
            yield case


@pytest.mark.parametrize("case", list(_cases()), ids=lambda case: case["id"])
def test_what_waits_past_the_servers_own_deadline_leaves_the_queue_without_work(  # DL-1 OVL-3
    bounded: ServerThread, case: dict[str, Any]
) -> None:
    before, num_before = bounded.rest(), engine_state(bounded.admin_port)["gauges"]["num_prefill_tokens"]
    given = case["input"]
    body = {"model": bounded.model, **given["request"], "x_script": given["engine"]}
    answer = request(bounded.port, "POST", given["endpoint"], body)
    if body.get("stream"):
        stream = read_stream(answer.body)
        assert b": ping\n" in answer.body, "heartbeats do not move the deadline"
        assert (stream.content(), stream.finish_reasons(), stream.num_done) == ("", [], 0)
        error = stream.errors[0]
        assert not answer.is_complete
    else:
        assert answer.status == 504
        error = answer.json()["error"]
    assert (error["code"], error["limit"]["scope"]) == ("deadline_exceeded", "server")
    bounded.wait_back(before)
    assert engine_state(bounded.admin_port)["gauges"]["num_prefill_tokens"] == num_before
