"""Two engines behind one server, one of which dies, hangs or is taken out, with requests in every phase on both.

Each client gets its own answer or one error; who had been sent nothing is answered by the other engine.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import pytest

from harness.accounting import check_accounts
from harness.faults import ENGINE_PHASES, Caller, Cell, Phase, Route, are_resting, ask, hex_pieces
from harness.pool_view import act, engine_rows, signal_engine, wait_engine
from harness.raw_http import Answer, request
from harness.server_thread import Baseline, ServerThread, wait_until
from harness.server_view import Metrics, engine_state, live_requests, read_metrics, read_ready

pytestmark = pytest.mark.process

PAUSE_S = 1.75
ROUTES = (Route.CHAT, Route.COMPLETIONS)
CELLS = tuple(
    Cell(phase, route, is_stream) for phase, route, is_stream in product(ENGINE_PHASES, ROUTES, (True, False))
)
SILENT = tuple(cell for cell in CELLS if not cell.num_tokens_before)


@dataclass(slots=True)
class Run:
    """Requests in every phase, spread over both engines, a fault of one engine, and what became of each request."""

    server: ServerThread
    before: Baseline
    counted: Metrics
    callers: dict[Cell, Caller] = field(default_factory=dict)
    lost: str = ""
    num_lost: int = 0

    @classmethod
    def begin(cls, server: ServerThread, cells: tuple[Cell, ...] = CELLS) -> "Run":
        run = cls(server, server.rest(), read_metrics(server.admin_port))
        run.callers = {cell: Caller(server.port, cell, pause_s=PAUSE_S) for cell in cells}
        for caller in run.callers.values():
            caller.read_before()
        wait_until(lambda: are_resting(server.admin_port, cells), "every request rests in its phase")
        rows = engine_rows(server.admin_port)
        run.lost = max(rows, key=lambda name: rows[name]["requests"])
        run.num_lost = rows[run.lost]["requests"]
        assert min(row["requests"] for row in rows.values()) > 0, "both have some"
        return run

    def since(self, name: str, **labels: str) -> float:
        return read_metrics(self.server.admin_port).since(self.counted, name, **labels)

    def finish(self) -> list[Cell]:
        """Reads every answer to its end, and waits until everything is back; returns who got an error."""
        failed = [cell for cell, caller in self.callers.items() if is_failed(cell, caller)]
        for caller in self.callers.values():
            caller.client.close()
        self.server.wait_ready()
        self.server.wait_back(self.before)
        assert live_requests(self.server.admin_port) == {}
        check_accounts(self.counted, read_metrics(self.server.admin_port))
        assert all(
            row["requests"] == row["outstanding_tokens"] == 0 for row in engine_rows(self.server.admin_port).values()
        )
        return failed


def is_failed(cell: Cell, caller: Caller) -> bool:
    """Reads the rest of an answer, which is whole and the caller's own, or one error."""
    answer = caller.read_rest()
    if not cell.is_stream:
        if answer.status == 502:
            assert answer.json()["error"]["code"] == "engine_lost"
            return True
        assert answer.status == 200
        choice = answer.json()["choices"][0]
        assert (choice["message"]["content"] if cell.route is Route.CHAT else choice["text"]) == cell.text
        return False
    if answer.headers["content-type"] == "application/json":
        assert (answer.status, answer.json()["error"]["code"]) == (502, "engine_lost")
        return True
    stream = caller.stream()
    assert stream.findings == []
    if stream.errors:
        assert ([error["code"] for error in stream.errors], stream.num_done) == (["engine_lost"], 0)
        assert cell.text.startswith(caller.text())
        return True
    assert (caller.text(), stream.num_done) == (cell.text, 1)
    return False


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(
        "scripted",
        engine__replicas=2,
        engine__restart_wait_s=0.01,
        engine__stall_timeout_s=2.75,
        pool__eject_wait_s=0.05,
    ) as running:
        for _ in range(4):
            chat(running)
        yield running


def chat(server: ServerThread, text: str = "x") -> Answer:
    return request(server.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces(text)}))


def test_one_engine_of_two_is_killed_in_every_phase(server: ServerThread) -> None:  # LIFE-2 SSE-4
    run = Run.begin(server)
    signal_engine(server.admin_port, run.lost)
    wait_engine(server.admin_port, run.lost, ready=False)
    assert read_ready(server.admin_port).status == 200
    assert chat(server, "meanwhile").json()["choices"][0]["message"]["content"] == "meanwhile"
    failed = run.finish()
    assert not set(failed) & set(SILENT), "who had been sent nothing is answered by the other engine"
    num_moved = run.since("pool_engine_moved_total", engine=run.lost)
    assert run.since("pool_engine_lost_total", engine=run.lost) == run.num_lost
    assert num_moved == run.num_lost - len(failed) > 0
    assert run.since("requests_failed_total", code="engine_lost") == len(failed) > 0
    assert run.since("engine_restarts_total") == 1
    other = next(name for name in engine_rows(server.admin_port) if name != run.lost)
    assert run.since("pool_engine_lost_total", engine=other) == 0


def test_the_killed_engine_is_tried_with_one_request_and_comes_back(server: ServerThread) -> None:  # LIFE-2
    signal_engine(server.admin_port, "engine-2")
    wait_engine(server.admin_port, "engine-2", ready=False)
    wait_engine(server.admin_port, "engine-2", ready=True)

    def is_back() -> bool:
        assert chat(server).status == 200
        return bool(engine_rows(server.admin_port)["engine-2"]["state"] == "ready")

    wait_until(is_back, "it has answered its trial")
    assert engine_state(server.admin_port)["condition"] is None


def test_one_engine_of_two_hangs(server: ServerThread) -> None:  # DL-5 LIFE-2
    run = Run.begin(server, SILENT)
    signal_engine(server.admin_port, run.lost, signal.SIGSTOP)
    assert run.finish() == []
    assert run.since("engine_stalls_total") == 1
    assert run.since("pool_engine_moved_total") == run.num_lost


def test_one_engine_of_two_is_restarted_by_its_name(server: ServerThread) -> None:
    run = Run.begin(server)
    status, told = act(server.admin_port, run.lost, "restart", {"wait_s": 60})
    assert (status, told["status"]) == (200, "ready")
    failed = run.finish()
    assert not set(failed) & set(SILENT)
    assert run.since("engine_restarts_total") == 1


def test_a_drained_engine_finishes_and_an_ejected_one_does_not(server: ServerThread) -> None:
    drained = Run.begin(server)
    assert act(server.admin_port, drained.lost, "drain")[1]["requests"] == drained.num_lost
    assert drained.finish() == []
    submitted = engine_rows(server.admin_port)[drained.lost]["submitted"]
    for _ in range(4):
        chat(server)
    row = engine_rows(server.admin_port)[drained.lost]
    assert (row["submitted"], row["state"]) == (submitted, "draining")
    other = next(name for name in engine_rows(server.admin_port) if name != drained.lost)
    assert act(server.admin_port, other, "eject")[0] == 503, "it is the last one"
    assert act(server.admin_port, drained.lost, "return")[1]["state"] == "probing"
    wait_until(lambda: bool(chat(server)) and engine_rows(server.admin_port)[drained.lost]["state"] == "ready", "back")
    ejected = Run.begin(server)
    assert act(server.admin_port, ejected.lost, "eject")[1]["taken"] == ejected.num_lost
    failed = ejected.finish()
    assert 0 < len(failed) < ejected.num_lost
    assert not set(failed) & set(SILENT)
    act(server.admin_port, ejected.lost, "return")
    wait_until(lambda: bool(chat(server)) and engine_rows(server.admin_port)[ejected.lost]["state"] == "ready", "back")


def test_clients_that_go_are_aborted_in_the_engine_that_has_them(server: ServerThread) -> None:
    run = Run.begin(server)
    for number, caller in enumerate(run.callers.values()):
        caller.client.reset() if number % 2 else caller.client.close()
    server.wait_back(run.before)
    assert run.since("aborts_total", cause="client_gone") == len(CELLS)
    rows = engine_rows(server.admin_port).values()
    assert [(row["requests"], row["outstanding_tokens"]) for row in rows] == [(0, 0), (0, 0)]


def _busy(server: ServerThread) -> str:
    """Returns the engine that has the only request, once one has."""
    names: list[str] = []

    def is_there() -> bool:
        names[:] = [name for name, row in engine_rows(server.admin_port).items() if row["requests"]]
        return len(names) == 1

    wait_until(is_there, "one engine has the request")
    return names[0]


def test_a_request_that_kills_its_engines_is_refused_by_the_third_try() -> None:  # LIFE-2
    with ServerThread("scripted", engine__replicas=2, engine__restart_wait_s=3600.0) as running:
        cell = Cell(Phase.PREFILL, Route.CHAT, is_stream=False)
        caller = Caller(running.port, cell)
        first = _busy(running)
        signal_engine(running.admin_port, first)
        wait_until(lambda: _busy(running) != first, "the other engine has it")
        signal_engine(running.admin_port, _busy(running))
        assert (caller.read_rest().status, caller.read_rest().json()["error"]["code"]) == (502, "engine_lost")
        caller.client.close()
        assert read_ready(running.admin_port).status == 503
        for name in engine_rows(running.admin_port):
            assert act(running.admin_port, name, "restart", {"wait_s": 60})[1]["status"] == "ready"
        again = Caller(running.port, cell)
        assert (again.read_rest().status, again.read_rest().json()["error"]["code"]) == (502, "engine_refused")
        again.client.close()
        assert chat(running).status == 200


def test_a_stream_that_was_opened_before_any_output_goes_on_with_the_other_engine() -> None:  # SSE-4
    with ServerThread("scripted", engine__replicas=2, server__status_hold_s=0.05) as running:
        cell = Cell(Phase.PREFILL, Route.CHAT, is_stream=True)
        caller = Caller(running.port, cell, pause_s=1.0)
        caller.answer = caller.client.read_head()
        assert caller.answer.status == 200
        rows = engine_rows(running.admin_port)
        signal_engine(running.admin_port, next(name for name, row in rows.items() if row["requests"]))
        answer = caller.read_rest()
        stream = caller.stream()
        assert (caller.text(), stream.num_done, stream.errors) == (cell.text, 1, [])
        assert {chunk["system_fingerprint"] for chunk in stream.chunks} == {answer.headers["tidegate-served-revision"]}
        caller.client.close()
