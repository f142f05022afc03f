"""Faults of the whole server, in every phase, on every shape of request: the engine's death and the server's end.

Columns: SIGKILL to the engine; SIGTERM to the server with a drain that is too short, and with one that is long enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from harness.accounting import check_accounts
from harness.fault_columns import Column, ServerColumn, check_failed, check_whole, warm_up
from harness.faults import CELLS, LONG_S, MATRIX_CELLS, NUM_ROWS, Caller, Cell, Phase, Route, are_resting, ask
from harness.faults import hex_pieces as hexed
from harness.raw_http import Answer, request
from harness.server_process import ServerProcess, is_alive
from harness.server_thread import ServerThread, wait_until
from harness.server_view import ended_requests, engine_state, read_metrics, read_ready

pytestmark = pytest.mark.process

DRAIN_PAUSE_S = 3.0
SHORT_DRAIN_S = 1.5
HOLD_S = 0.05
ROWS = {"engine__max_sequences": NUM_ROWS}
cells = pytest.mark.parametrize("cell", MATRIX_CELLS, ids=lambda cell: cell.name)


# ---- the engine goes ----


@dataclass(slots=True)
class EngineDeath(ServerColumn):
    """SIGKILL to the engine, with what the server said at each point."""

    while_down: list[Answer] = field(default_factory=list)
    epochs: tuple[int, int] = (0, 0)
    next_answer: Answer | None = None


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted", **ROWS) as running:
        warm_up(running)
        yield running


@pytest.fixture(scope="module")
def death(server: ServerThread) -> EngineDeath:
    column = EngineDeath()
    column.open(server)
    column.begin(server.port, server.admin_port)
    old_epoch = engine_state(server.admin_port)["epoch"]
    server.kill_engine()
    column.finish()
    column.while_down = [
        read_ready(server.admin_port),
        request(server.port, "GET", "/health"),
        request(server.port, "POST", Route.CHAT.value, ask(Route.CHAT)),
    ]
    wait_until(lambda: read_ready(server.admin_port).status == 200, "ready again")
    column.epochs = old_epoch, engine_state(server.admin_port)["epoch"]
    column.next_answer = request(
        server.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hexed("new")}), {"X-Request-Id": "next"}
    )
    column.close(server)
    return column


@cells
def test_a_request_of_a_killed_engine_fails_at_once(death: EngineDeath, cell: Cell) -> None:  # LIFE-2 SSE-4 SSE-5
    """One that still waited in the server is told that there is no engine, rather than that it was lost."""
    if cell.phase is Phase.GATE:
        code = check_failed(
            cell, death, status=503, codes=("engine_unavailable",), kind="overloaded_error", is_retry_safe=True
        )
        ended = death.ended[cell.name]
        assert (ended["outcome"], ended["code"], ended["status"]) == ("error", code, 503)
        assert ended["num_completion_tokens"] == 0
        return
    check_failed(cell, death, status=502, codes=("engine_lost",), kind="server_error", is_retry_safe=True)
    ended = death.ended[cell.name]
    assert (ended["outcome"], ended["code"]) == ("error", "engine_lost")
    assert ended["status"] == (200 if cell.text_before else 502)
    assert ended["num_completion_tokens"] == cell.num_tokens_before


def test_a_killed_engine_is_counted_and_comes_back_under_a_new_epoch(death: EngineDeath) -> None:  # LIFE-2
    assert death.next_answer is not None
    refused = death.while_down[-1]
    assert [answer.status for answer in death.while_down] == [503, 503, 503]
    assert refused.json()["error"]["code"] == "engine_unavailable"
    assert 1 <= int(refused.headers["retry-after"]) <= 120
    old_epoch, new_epoch = death.epochs
    assert new_epoch > old_epoch
    assert death.since("engine_restarts_total") == new_epoch - old_epoch
    num_lost = sum(cell.phase is not Phase.GATE for cell in MATRIX_CELLS)
    assert death.since("requests_failed_total", code="engine_lost") == num_lost
    assert death.since("aborts_total") == 0
    assert death.since("request_success_total") == 1
    assert death.next_answer.json()["choices"][0]["message"]["content"] == "new"


# ---- after the status, before any output ----


@pytest.fixture(scope="module")
def hasty() -> Iterator[ServerThread]:
    """Sends the status of a stream long before there is any output."""
    with ServerThread("scripted", server__status_hold_s=HOLD_S) as running:
        warm_up(running)
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
    now = read_metrics(hasty.admin_port)
    name, labels = ("aborts_total", {"cause": "client_gone"})
    if fault == "engine killed":
        name, labels = ("request_errors_total", {"code": "engine_lost"})
    assert now.since(counted, name, **labels) == len(OPENED)
    check_accounts(counted, now)


# ---- the server is told to end ----


@dataclass(slots=True)
class Termination(Column):
    """SIGTERM to a server program, again and again, and what it said meanwhile."""

    exit_code: int | None = None
    was_engine_alive: bool = True
    is_engine_alive: bool = True
    ready: Answer | None = None
    refused: Answer | None = None


def terminate(*, drain_timeout_s: float, pause_s: float) -> Termination:
    column = Termination()
    with ServerProcess("scripted", server__drain_timeout_s=drain_timeout_s, **ROWS) as program:
        column.begin(program.port, program.admin_port, pause_s=pause_s)
        engine_id = engine_state(program.admin_port)["process_id"]
        column.was_engine_alive = is_alive(engine_id)
        program.signal()
        wait_until(lambda: read_ready(program.admin_port).status == 503, "draining")
        column.ready = read_ready(program.admin_port)
        column.refused = request(program.port, "POST", Route.CHAT.value, ask(Route.CHAT))
        program.signal()
        column.finish()
        wait_until(program.has_ended_under_signals, "the end")
        column.exit_code = program.wait()
        column.is_engine_alive = is_alive(engine_id)
        column.ended = ended_requests(program.lines)
    return column


@pytest.fixture(scope="module")
def short_drain() -> Termination:
    return terminate(drain_timeout_s=SHORT_DRAIN_S, pause_s=LONG_S)


@pytest.fixture(scope="module")
def long_drain() -> Termination:
    return terminate(drain_timeout_s=LONG_S, pause_s=DRAIN_PAUSE_S)


@cells
def test_a_drain_that_is_too_short_ends_a_request_with_an_error(  # LIFE-1 SSE-4
    short_drain: Termination, cell: Cell
) -> None:
    check_failed(cell, short_drain, status=503, codes=("server_draining",), kind="overloaded_error", is_retry_safe=True)
    ended = short_drain.ended[cell.name]
    refused = {"error"} if cell.phase is Phase.GATE else set()  # at the beginning of the drain
    assert ended["outcome"] in {"shutdown"} | refused
    assert ended["code"] == "server_draining"
    assert ended["status"] == (200 if cell.text_before else 503)
    assert ended["num_completion_tokens"] == cell.num_tokens_before


@cells
def test_a_drain_that_is_long_enough_lets_a_request_finish(long_drain: Termination, cell: Cell) -> None:  # LIFE-1
    check_whole(cell, long_drain)
    ended = long_drain.ended[cell.name]
    num_tokens = len(cell.pieces) * cell.num_choices
    assert (ended["outcome"], ended["status"], ended["num_completion_tokens"]) == ("stop", 200, num_tokens)
    assert "code" not in ended


@pytest.mark.parametrize("drain", ["short_drain", "long_drain"])
def test_a_server_that_is_told_to_end_refuses_new_work_and_exits_clean(  # LIFE-1
    drain: str, request: pytest.FixtureRequest
) -> None:
    column: Termination = request.getfixturevalue(drain)
    assert column.ready is not None
    assert column.refused is not None
    assert column.ready.status == 503
    assert (column.refused.status, column.refused.json()["error"]["code"]) == (503, "server_draining")
    assert 1 <= int(column.refused.headers["retry-after"]) <= 120
    assert column.refused.headers["x-should-retry"] == "true"
    assert column.exit_code == 0
    assert (column.was_engine_alive, column.is_engine_alive) == (True, False)
    assert set(column.ended) <= {*(cell.name for cell in MATRIX_CELLS), column.refused.headers["x-request-id"]}
