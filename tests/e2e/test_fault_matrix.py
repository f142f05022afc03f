"""Every fault in every phase, on both routes, streamed and whole: what the client sees, what is left, what is counted.

Rows: queued, prefill, decode, last chunk. Columns: the client closes, the client resets, the engine is killed
(SIGKILL), the server is told to end (SIGTERM), with a drain that is too short and one that is long enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.faults import CELLS, LONG_S, WHOLE_TEXT, Caller, Cell, Phase, Route, are_resting, ask, hex_pieces
from harness.raw_http import Answer, request
from harness.server_process import ServerProcess, is_alive
from harness.server_thread import ServerThread, wait_until
from harness.server_view import Metrics, ended_requests, engine_state, read_metrics, read_ready

pytestmark = pytest.mark.process

DRAIN_PAUSE_S = 3.0
SHORT_DRAIN_S = 1.5
HOLD_S = 0.05
cells = pytest.mark.parametrize("cell", CELLS, ids=[cell.name for cell in CELLS])


@dataclass(slots=True)
class Fault:
    """One fault that hit a request of every cell at once, and what became of them."""

    answers: dict[Cell, Answer] = field(default_factory=dict)
    texts_before: dict[Cell, str] = field(default_factory=dict)
    callers: dict[Cell, Caller] = field(default_factory=dict)
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)

    def begin(self, port: int, admin_port: int, pause_s: float) -> None:
        """Brings a request of every cell into its phase."""
        for cell in CELLS:
            self.callers[cell] = Caller(port, cell, pause_s=pause_s)
            self.texts_before[cell] = self.callers[cell].read_before()
        wait_until(lambda: are_resting(admin_port, CELLS), "every request rests in its phase")

    def finish(self) -> None:
        for cell, caller in self.callers.items():
            self.answers[cell] = caller.read_rest()
            caller.client.close()


def check_error(cell: Cell, fault: Fault, *, status: int, code: str, kind: str) -> None:
    """The end of a request that failed: a status where nothing had been sent, else an event and a cut."""
    answer = fault.answers[cell]
    if not cell.text_before:
        assert answer.status == status
        assert answer.is_complete
        assert answer.headers["content-type"] == "application/json"
        error = answer.json()["error"]
        assert answer.headers["x-should-retry"] == "true"
    else:
        stream = fault.callers[cell].stream()
        assert answer.status == 200
        assert stream.findings == []
        assert "error" in stream.chunks[-1]
        assert len(stream.errors) == 1
        assert (stream.num_done, stream.finish_reasons()) == (0, [])
        assert not answer.is_complete, "the connection is cut, so that nobody takes the stream for complete"
        assert fault.callers[cell].text() == cell.text_before == fault.texts_before[cell]
        error = stream.errors[0]
    assert (error["code"], error["type"]) == (code, kind)
    assert set(error) >= {"message", "type", "param", "code"}
    assert answer.headers["x-request-id"] == cell.name


def check_whole(cell: Cell, fault: Fault) -> None:
    """The end of a request that was allowed to finish."""
    answer = fault.answers[cell]
    assert (answer.status, answer.is_complete) == (200, True)
    if cell.is_stream:
        stream = fault.callers[cell].stream()
        assert (stream.findings, stream.errors, stream.finish_reasons()) == ([], [], ["stop"])
        assert (stream.num_done, stream.is_done_last) == (1, True)
        assert fault.callers[cell].text() == WHOLE_TEXT
    else:
        choice = answer.json()["choices"][0]
        assert choice["finish_reason"] == "stop"
        text = choice["message"]["content"] if cell.route is Route.CHAT else choice["text"]
        assert text == WHOLE_TEXT


# ---- the client goes ----


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted") as running:
        request(running.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("x")}))
        yield running


@pytest.mark.parametrize("is_reset", [False, True], ids=["closes", "resets"])
@cells
def test_a_client_that_goes_leaves_nothing(server: ServerThread, cell: Cell, is_reset: bool) -> None:  # DL-2
    before, counted = server.rest(), read_metrics(server.admin_port)
    server.take_log()
    caller = Caller(server.port, cell)
    assert caller.read_before() == cell.text_before
    wait_until(lambda: are_resting(server.admin_port, (cell,)), "the request rests in its phase")
    caller.client.reset() if is_reset else caller.client.close()
    server.wait_back(before)
    ended = ended_requests(server.take_log())[cell.name]
    assert (ended["outcome"], ended["is_stream"]) == ("client_gone", cell.is_stream)
    assert ended.get("status") == (200 if cell.text_before else None)
    assert "code" not in ended
    now = read_metrics(server.admin_port)
    assert now.since(counted, "aborts_total") == now.since(counted, "aborts_total", cause="client_gone") == 1
    assert now.since(counted, "request_success_total") == now.since(counted, "request_errors_total") == 0
    assert now.since(counted, "requests_received_total") == 1
    assert read_ready(server.admin_port).status == 200


# ---- the engine goes ----


@dataclass(slots=True)
class EngineDeath(Fault):
    """SIGKILL to the engine, with what the server said at each point."""

    counted: Metrics | None = None
    now: Metrics | None = None
    while_down: list[Answer] = field(default_factory=list)
    epochs: tuple[int, int] = (0, 0)
    next_answer: Answer | None = None


@pytest.fixture(scope="module")
def death(server: ServerThread) -> EngineDeath:
    before = server.rest()
    fault = EngineDeath(counted=read_metrics(server.admin_port))
    server.take_log()
    fault.begin(server.port, server.admin_port, LONG_S)
    old_epoch = engine_state(server.admin_port)["epoch"]
    server.kill_engine()
    fault.finish()
    fault.while_down = [
        read_ready(server.admin_port),
        request(server.port, "GET", "/health"),
        request(server.port, "POST", Route.CHAT.value, ask(Route.CHAT)),
    ]
    wait_until(lambda: read_ready(server.admin_port).status == 200, "ready again")
    fault.epochs = old_epoch, engine_state(server.admin_port)["epoch"]
    fault.next_answer = request(
        server.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("new")}), {"X-Request-Id": "next"}
    )
    server.wait_back(before)
    fault.now = read_metrics(server.admin_port)
    fault.ended = ended_requests(server.take_log())
    return fault


@cells
def test_a_request_of_a_killed_engine_fails_at_once(death: EngineDeath, cell: Cell) -> None:
    check_error(cell, death, status=502, code="engine_lost", kind="server_error")
    ended = death.ended[cell.name]
    assert (ended["outcome"], ended["code"]) == ("error", "engine_lost")
    assert ended["status"] == (200 if cell.text_before else 502)


def test_a_killed_engine_is_counted_and_comes_back_under_a_new_epoch(death: EngineDeath) -> None:
    assert death.counted is not None
    assert death.now is not None
    assert death.next_answer is not None
    refused = death.while_down[-1]
    assert [answer.status for answer in death.while_down] == [503, 503, 503]
    assert refused.json()["error"]["code"] == "engine_unavailable"
    assert 1 <= int(refused.headers["retry-after"]) <= 120
    old_epoch, new_epoch = death.epochs
    assert new_epoch > old_epoch
    assert death.now.since(death.counted, "engine_restarts_total") == new_epoch - old_epoch
    assert death.now.since(death.counted, "request_errors_total", code="engine_lost") == len(CELLS)
    assert death.now.since(death.counted, "aborts_total") == 0
    assert death.now.since(death.counted, "request_success_total") == 1
    assert death.next_answer.json()["choices"][0]["message"]["content"] == "new"


# ---- after the status, before any output ----


@pytest.fixture(scope="module")
def hasty() -> Iterator[ServerThread]:
    """Sends the status of a stream long before there is any output."""
    with ServerThread("scripted", server__status_hold_s=HOLD_S) as running:
        request(running.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("x")}))
        yield running


OPENED = tuple(cell for cell in CELLS if cell.is_stream and cell.phase in (Phase.QUEUED, Phase.PREFILL))


@pytest.mark.parametrize("fault", ["client closes", "client resets", "engine killed"])
def test_a_stream_that_was_opened_early_ends_like_one_that_has_output(hasty: ServerThread, fault: str) -> None:
    before, counted = hasty.rest(), read_metrics(hasty.admin_port)
    callers = [Caller(hasty.port, cell) for cell in OPENED]
    for caller in callers:
        caller.answer = caller.client.read_head()
        assert caller.answer.status == 200
    assert are_resting(hasty.admin_port, OPENED)
    if fault == "engine killed":
        hasty.kill_engine()
    for caller in callers:
        if fault == "engine killed":
            answer, stream = caller.read_rest(), caller.stream()
            assert [error["code"] for error in stream.errors] == ["engine_lost"]
            assert (caller.text(), stream.finish_reasons(), stream.num_done) == ("", [], 0)
            assert not answer.is_complete
        caller.client.reset() if fault == "client resets" else caller.client.close()
    hasty.wait_ready()
    hasty.wait_back(before)
    name, labels = ("aborts_total", {"cause": "client_gone"})
    if fault == "engine killed":
        name, labels = ("request_errors_total", {"code": "engine_lost"})
    assert read_metrics(hasty.admin_port).since(counted, name, **labels) == len(OPENED)


# ---- the server is told to end ----


@dataclass(slots=True)
class Termination(Fault):
    """SIGTERM to a server program, again and again, and what it said meanwhile."""

    exit_code: int | None = None
    was_engine_alive: bool = True
    is_engine_alive: bool = True
    ready: Answer | None = None
    refused: Answer | None = None


def terminate(*, drain_timeout_s: float, pause_s: float) -> Termination:
    fault = Termination()
    with ServerProcess("scripted", server__drain_timeout_s=drain_timeout_s) as program:
        fault.begin(program.port, program.admin_port, pause_s)
        engine_id = engine_state(program.admin_port)["process_id"]
        fault.was_engine_alive = is_alive(engine_id)
        program.signal()
        wait_until(lambda: read_ready(program.admin_port).status == 503, "draining")
        fault.ready = read_ready(program.admin_port)
        fault.refused = request(program.port, "POST", Route.CHAT.value, ask(Route.CHAT))
        program.signal()
        fault.finish()
        wait_until(program.has_ended_under_signals, "the end")
        fault.exit_code = program.wait()
        fault.is_engine_alive = is_alive(engine_id)
        fault.ended = ended_requests(program.lines)
    return fault


@pytest.fixture(scope="module")
def short_drain() -> Termination:
    return terminate(drain_timeout_s=SHORT_DRAIN_S, pause_s=LONG_S)


@pytest.fixture(scope="module")
def long_drain() -> Termination:
    return terminate(drain_timeout_s=LONG_S, pause_s=DRAIN_PAUSE_S)


@cells
def test_a_drain_that_is_too_short_ends_a_request_with_an_error(short_drain: Termination, cell: Cell) -> None:
    check_error(cell, short_drain, status=503, code="server_draining", kind="overloaded_error")
    ended = short_drain.ended[cell.name]
    assert (ended["outcome"], ended["code"]) == ("shutdown", "server_draining")
    assert ended["status"] == (200 if cell.text_before else 503)


@cells
def test_a_drain_that_is_long_enough_lets_a_request_finish(long_drain: Termination, cell: Cell) -> None:
    check_whole(cell, long_drain)
    ended = long_drain.ended[cell.name]
    assert (ended["outcome"], ended["status"], ended["num_completion_tokens"]) == ("stop", 200, len(WHOLE_TEXT))
    assert "code" not in ended


@pytest.mark.parametrize("drain", ["short_drain", "long_drain"])
def test_a_server_that_is_told_to_end_refuses_new_work_and_exits_clean(
    drain: str, request: pytest.FixtureRequest
) -> None:
    fault: Termination = request.getfixturevalue(drain)
    assert fault.ready is not None
    assert fault.refused is not None
    assert fault.ready.status == 503
    assert (fault.refused.status, fault.refused.json()["error"]["code"]) == (503, "server_draining")
    assert 1 <= int(fault.refused.headers["retry-after"]) <= 120
    assert fault.refused.headers["x-should-retry"] == "true"
    assert fault.exit_code == 0
    assert (fault.was_engine_alive, fault.is_engine_alive) == (True, False)
    assert len(fault.ended) == len(CELLS)
