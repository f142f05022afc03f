"""The end of a server: what is let finish, what is cut off and how it is told, and that nothing is left behind."""

import signal
from collections.abc import Iterator

import pytest

from harness.event_stream import read_stream
from harness.faults import CELLS, LONG_S, Caller, Cell, Phase, Route, are_resting, ask, hex_pieces
from harness.raw_http import RawClient, request
from harness.server_process import ServerProcess
from harness.server_thread import ServerThread, wait_until
from harness.server_view import ended_requests, engine_state, live_requests, read_metrics, read_ready
from tidegate.lifecycle.drain import DrainEvent

pytestmark = pytest.mark.process

SHORT_DRAIN_S = 0.2
LONG_TEXT = ["0123456789" * 20 + f"{number:02}" for number in range(50)]
NUM_REPEATS = 20


@pytest.fixture
def server() -> Iterator[ServerThread]:
    settings = {"server__drain_timeout_s": SHORT_DRAIN_S, "server__send_buffer_bytes": 4096}
    with ServerThread("scripted", **settings) as running:
        request(running.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("x")}))
        yield running


def test_a_drain_brings_every_account_back_and_is_counted(server: ServerThread) -> None:
    before, counted = server.rest(), read_metrics(server.admin_port)
    callers = [Caller(server.port, cell) for cell in CELLS]
    for caller in callers:
        caller.read_before()
    wait_until(lambda: are_resting(server.admin_port, CELLS), "every request rests in its phase")
    server.call(server.running.drain)
    for caller in callers:
        caller.read_rest()
        caller.client.close()
    server.wait_back(before)
    now = read_metrics(server.admin_port)
    assert now.since(counted, "aborts_total") == now.since(counted, "aborts_total", cause="shutdown") == len(CELLS)
    assert now.since(counted, "request_errors_total", code="server_draining") == len(CELLS)
    assert now.since(counted, "request_success_total") == 0


def test_a_drained_server_refuses_work_and_still_tells_about_itself(server: ServerThread) -> None:
    counted = read_metrics(server.admin_port)
    server.call(server.running.drain)
    refused = request(server.port, "POST", Route.CHAT.value, ask(Route.CHAT))
    assert (refused.status, refused.json()["error"]["code"]) == (503, "server_draining")
    assert int(refused.headers["retry-after"]) >= 1
    assert (read_ready(server.admin_port).status, request(server.port, "GET", "/health").status) == (503, 503)
    assert request(server.port, "GET", "/healthz").status == 200
    assert request(server.port, "GET", "/v1/models").status == 200
    now = read_metrics(server.admin_port)
    refusals = now.since(counted, "requests_refused_total", route=Route.CHAT.value, code="server_draining")
    assert refusals == now.since(counted, "requests_received_total") == 1


def test_an_engine_that_dies_in_a_drain_does_not_hold_it_up(server: ServerThread) -> None:
    before = server.rest()
    caller = Caller(server.port, Cell(Phase.LAST, Route.CHAT, is_stream=True))
    caller.read_before()
    server.look(lambda: server.running.parts.drain.apply(DrainEvent.BEGIN))
    server.kill_engine()
    caller.read_rest()
    assert caller.stream().errors[0]["code"] == "engine_lost"
    caller.client.close()
    server.call(server.running.drain)
    server.wait_ready()
    server.wait_back(before)


def test_a_text_that_is_complete_is_not_taken_back_by_the_end_of_a_drain(server: ServerThread) -> None:
    """The engine has finished; only the reader has not."""
    before = server.rest()
    client = RawClient(server.port, receive_buffer_bytes=4096)
    script = {"pieces": hex_pieces(*LONG_TEXT), "repeat": NUM_REPEATS, "finish": "eos"}
    client.post(Route.CHAT.value, ask(Route.CHAT, script, stream=True), {"X-Request-Id": "slow"})
    wait_until(
        lambda: live_requests(server.admin_port).get("slow", {}).get("work") == "finished", "the engine has finished"
    )
    server.call(server.running.drain)
    assert live_requests(server.admin_port)["slow"]["reply"] == "streaming"
    answer = client.read_answer()
    stream = read_stream(answer.body)
    assert stream.content() == "".join(LONG_TEXT) * NUM_REPEATS
    assert (stream.errors, stream.finish_reasons(), stream.is_done_last) == ([], ["stop"], True)
    assert answer.is_complete
    client.close()
    server.wait_back(before)
    assert ended_requests(server.take_log())["slow"]["outcome"] == "stop"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_an_idle_program_ends_at_once_and_clean(number: int) -> None:
    with ServerProcess("scripted", server__drain_timeout_s=LONG_S) as program, RawClient(program.port) as idle:
        idle.send("GET", "/healthz")
        assert idle.read_answer("GET").status == 200
        program.signal(number)
        assert program.wait() == 0
        assert idle.is_closed()


def test_a_reader_that_is_stuck_does_not_keep_a_program_from_its_end() -> None:
    with ServerProcess("scripted", server__drain_timeout_s=SHORT_DRAIN_S, server__send_buffer_bytes=4096) as program:
        script = {"pieces": hex_pieces(*LONG_TEXT), "repeat": 200, "finish": "eos"}
        with RawClient(program.port, receive_buffer_bytes=4096) as stuck:
            stuck.post(Route.CHAT.value, ask(Route.CHAT, script, stream=True), {"X-Request-Id": "stuck"})
            wait_until(lambda: engine_state(program.admin_port)["gauges"]["num_held"] == 1, "the reader is behind")
            program.signal()
            assert program.wait() == 0
        assert ended_requests(program.lines)["stuck"]["outcome"] == "shutdown"
