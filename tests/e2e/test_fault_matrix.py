"""Faults of one client or of one request, in every phase, on every shape of request, streamed and whole.

Columns: the client closes (FIN), the client resets (RST), the reader stalls, the engine fails this request, its
deadline passes. All requests of a column meet the fault together on one server; each cell is then judged by itself, and
the column's end shows that every account is back. The engine's death and the server's end: `..._matrix_server.py`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from harness.fault_columns import ServerColumn, check_failed, warm_up
from harness.faults import ENGINE_CELLS, GATE_CELLS, MATRIX_CELLS, NUM_ROWS, NUM_TOKENS, Caller, Cell, Phase
from harness.faults import hex_pieces as hexed
from harness.server_thread import ServerThread, wait_until
from harness.server_view import ended_requests, live_requests

pytestmark = pytest.mark.process

BUFFER_BYTES = 4096
PAUSE_S = 0.3
STEP_S = 0.01
DEADLINE_MS, GATE_DEADLINE_MS = 4000, 1500
"""Those at the gate come last and go first: their turn must not come."""
FLOOD, NUM_FLOODS = "0123456789abcdef" * 128, 100
BIG_LAST = "0123456789abcdef" * 16384


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    settings = {
        "engine__max_sequences": NUM_ROWS,
        "server__send_buffer_bytes": BUFFER_BYTES,
        "server__unsent_bytes": BUFFER_BYTES,
        "server__slow_client_timeout_s": 1.5,
    }
    with ServerThread("scripted", **settings) as running:
        warm_up(running)
        yield running


# ---- the client goes ----


def leave(server: ServerThread, column: ServerColumn, *, is_reset: bool) -> None:
    column.open(server)
    column.begin(server.port, server.admin_port)
    for cell in MATRIX_CELLS:
        client = column.callers[cell].client
        client.reset() if is_reset else client.close()
    column.close(server)
    assert column.since("aborts_total", cause="client_gone") == column.since("aborts_total") == len(MATRIX_CELLS)
    assert column.since("engine_output_tokens_total") == column.num_tokens_before, "nothing was generated for nobody"


def check_gone(cell: Cell, column: ServerColumn) -> None:
    ended = column.ended[cell.name]
    assert (ended["outcome"], ended["is_stream"]) == ("client_gone", cell.is_stream)
    assert ended.get("status") == (200 if cell.text_before else None)
    assert ended.get("num_completion_tokens", 0) == cell.num_tokens_before
    assert "code" not in ended


# ---- the reader stalls ----


def flood(cell: Cell) -> dict[str, Any]:
    """Text before the phase's pause as always; behind it more than any buffer on the way holds, slowly enough that the
    engine is held long before it has said all of it."""
    if cell.phase is Phase.LAST:
        return cell.body(PAUSE_S, pieces=hexed(*cell.pieces[:2], BIG_LAST))
    return cell.body(PAUSE_S, pieces=hexed(cell.pieces[0], FLOOD), repeat=NUM_FLOODS, delays_s=[STEP_S])


def whole_text(cell: Cell) -> str:
    if cell.phase is Phase.LAST:
        return "".join(cell.pieces[:2]) + BIG_LAST
    return (cell.pieces[0] + FLOOD) * NUM_FLOODS


def stall(server: ServerThread, column: ServerColumn) -> None:
    column.open(server)
    for cells in (ENGINE_CELLS, GATE_CELLS):
        for cell in cells:
            column.callers[cell] = Caller(server.port, cell, body=flood(cell), receive_buffer_bytes=BUFFER_BYTES)
        for cell in cells:
            if cell.text_before:
                read_a_little(column.callers[cell])
    wait_until(lambda: len(ended_requests(server.log.getvalue())) == len(MATRIX_CELLS), "all have ended, unread")
    assert live_requests(server.admin_port) == {}
    for cell, caller in column.callers.items():
        if not cell.is_stream:
            column.answers[cell] = caller.read_rest()
        caller.client.close()
    column.close(server)
    num_streams = sum(cell.is_stream and cell.phase is not Phase.LAST for cell in MATRIX_CELLS)
    assert column.since("aborts_total") == column.since("aborts_total", cause="slow_client") >= num_streams


def read_a_little(caller: Caller) -> None:
    caller.answer = caller.client.read_head()
    while not any(caller.texts()):
        chunk = caller.client.read_chunk()
        assert chunk is not None
        caller.answer.body += chunk


def check_stalled(cell: Cell, column: ServerColumn) -> None:
    """A stream is cut off while the engine is held; where the last text is already with the kernel, it is done."""
    ended = column.ended[cell.name]
    assert ended["status"] == 200
    assert "code" not in ended
    if cell.is_stream:
        assert ended["outcome"] in (("slow_client", "stop") if cell.phase is Phase.LAST else ("slow_client",))
        if cell.phase is not Phase.LAST:
            num_tokens = 2 * NUM_FLOODS * cell.num_choices
            assert ended["num_completion_tokens"] < num_tokens, "the engine was held long before the end"
        return
    assert ended["outcome"] == "stop"
    choices = column.answers[cell].json()["choices"]
    texts = [choice["message"]["content"] if "message" in choice else choice["text"] for choice in choices]
    assert texts == [whole_text(cell)] * cell.num_choices, "a reader who comes back gets all of it"


# ---- the engine fails this request ----


def err(server: ServerThread, column: ServerColumn) -> None:
    column.open(server)
    for cell in (*ENGINE_CELLS, *GATE_CELLS):
        body = cell.body(PAUSE_S, error_after=NUM_TOKENS[cell.phase])
        column.callers[cell] = Caller(server.port, cell, body=body)
    column.finish()
    column.close(server)
    assert column.since("requests_failed_total", code="engine_refused") == len(MATRIX_CELLS)
    assert column.since("request_errors_total") == len(MATRIX_CELLS)
    assert column.since("aborts_total") == 0


def check_err(cell: Cell, column: ServerColumn) -> None:
    check_failed(cell, column, status=502, codes=("engine_refused",), kind="server_error", is_retry_safe=True)
    ended = column.ended[cell.name]
    assert (ended["outcome"], ended["code"]) == ("error", "engine_refused")
    assert ended["status"] == column.answers[cell].status


# ---- the deadline passes ----


def hurry(deadline_ms: int) -> dict[str, str]:
    return {"X-Deadline-Ms": str(deadline_ms)}


def hurried_caller(port: int, cell: Cell) -> Caller:
    return Caller(port, cell, headers=hurry(GATE_DEADLINE_MS if cell.phase is Phase.GATE else DEADLINE_MS))


def expire(server: ServerThread, column: ServerColumn) -> None:
    column.open(server)
    column.begin(server.port, server.admin_port, make=hurried_caller)
    column.finish()
    column.close(server)
    assert column.since("request_success_total") == 0
    assert column.since("engine_output_tokens_total") == column.num_tokens_before


def check_expired(cell: Cell, column: ServerColumn) -> None:
    """In a queue the veto may come before the deadline itself."""
    codes = ("deadline_exceeded", "deadline_unreachable")
    is_queued = cell.phase in (Phase.GATE, Phase.QUEUED)
    code = check_failed(
        cell, column, status=504, codes=codes if is_queued else codes[:1], kind="timeout_error", is_retry_safe=False
    )
    ended = column.ended.get(cell.name)
    if ended is not None:
        refused = {"error"} if cell.phase is Phase.GATE else set()
        assert ended["outcome"] in {"deadline"} | refused
        assert ended["code"] == code
        assert ended.get("num_completion_tokens", 0) == cell.num_tokens_before
    else:
        assert cell.phase is Phase.GATE, "what the engine knew has an end"


# ---- all of them ----

FAULTS: dict[str, tuple[Callable[[ServerThread, ServerColumn], None], Callable[[Cell, ServerColumn], None]]] = {
    "client closes": (partial(leave, is_reset=False), check_gone),
    "client resets": (partial(leave, is_reset=True), check_gone),
    "reader stalls": (stall, check_stalled),
    "engine errs": (err, check_err),
    "deadline passes": (expire, check_expired),
}


@pytest.fixture(scope="module", params=FAULTS)
def fault(request: pytest.FixtureRequest, server: ServerThread) -> tuple[str, ServerColumn]:
    """The fault's name, and its column once it has happened."""
    name: str = request.param
    column = ServerColumn()
    try:
        FAULTS[name][0](server, column)
    finally:
        column.hang_up()
    return name, column


@pytest.mark.parametrize("cell", MATRIX_CELLS, ids=lambda cell: cell.name)
def test_one_fault_in_one_phase_ends_as_it_must_and_leaves_nothing(  # DL-2 DL-3 DL-4 SSE-4 SSE-5 SLOW-1 ERR-1
    fault: tuple[str, ServerColumn], cell: Cell
) -> None:
    name, column = fault
    FAULTS[name][1](cell, column)
