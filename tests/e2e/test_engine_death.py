"""An engine that dies, hangs, or does not come back: what callers and operators see, and that nothing is left."""

import asyncio
import io
import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from harness.faults import CELLS, Caller, Cell, Phase, Route, are_resting, ask, hex_pieces
from harness.raw_http import Answer, request
from harness.server_thread import ServerThread, wait_until
from harness.server_view import engine_state, read_metrics, read_ready
from tidegate.cli.model_loading import load_models
from tidegate.cli.running_server import RunningServer
from tidegate.cli.settings_sources import resolve
from tidegate.cli.sockets import Sockets
from tidegate.engines.local.supervisor import Supervisor
from tidegate.observability.logs import LogFormat, LogSettings, build_logger
from tidegate.system import SystemClock

pytestmark = pytest.mark.process

STAY_DOWN_S = 3600.0
STREAM = Cell(Phase.DECODE, Route.CHAT, is_stream=True)


def chat(server: ServerThread, text: str = "x") -> Answer:
    return request(server.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces(text)}))


def revive(server: ServerThread) -> None:
    answer = request(server.admin_port, "POST", "/admin/v1/engine/restart", {"wait_s": 60})
    assert answer.status == 200


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    """An engine that dies stays down until somebody asks for it."""
    with ServerThread("scripted", engine__restart_wait_s=STAY_DOWN_S) as running:
        chat(running)
        yield running


def test_a_death_is_told_explained_waited_out_and_recovered_from(server: ServerThread) -> None:  # LIFE-2
    before = server.rest()
    server.take_log()
    callers = [Caller(server.port, cell) for cell in CELLS]
    for caller in callers:
        caller.read_before()
    wait_until(lambda: are_resting(server.admin_port, CELLS), "every request rests in its phase")
    server.kill_engine()
    for caller in callers:  # none of them waits for the next engine, which does not come
        answer = caller.read_rest()
        if caller.cell.text_before:
            stream = caller.stream()
            assert ([error["code"] for error in stream.errors], stream.num_done) == (["engine_lost"], 0)
            assert not answer.is_complete
        else:
            assert (answer.status, answer.json()["error"]["code"]) == (502, "engine_lost")
            assert answer.headers["x-should-retry"] == "true"
        caller.client.close()
    wait_until(lambda: "SIGKILL" in read_ready(server.admin_port).json()["error"]["message"], "the reason is known")
    ready = read_ready(server.admin_port)
    assert (ready.status, ready.json()["error"]["code"]) == (503, "engine_unavailable")
    assert ready.json()["error"]["message"].startswith("the engine has ended and is started again in 3")
    refused = chat(server)
    assert (refused.status, refused.json()["error"]["code"]) == (503, "engine_unavailable")
    assert (refused.headers["retry-after"], refused.headers["x-should-retry"]) == ("120", "true")
    assert "SIGKILL" not in refused.body.decode(), "why is the operator's affair"
    assert request(server.port, "GET", "/healthz").status == 200
    state = engine_state(server.admin_port)
    assert (state["ready"], state["process_id"]) == (False, None)
    revive(server)
    assert chat(server, "new").json()["choices"][0]["message"]["content"] == "new"
    server.wait_back(before)


def test_the_error_comes_before_the_next_engine() -> None:  # LIFE-2
    with ServerThread("scripted", engine__restart_wait_s=0.001) as running:
        caller = Caller(running.port, STREAM)
        caller.read_before()
        running.take_log()
        running.kill_engine()
        caller.read_rest()
        running.wait_ready()
        caller.client.close()
        wait_until(lambda: '"request ended"' in running.log.getvalue(), "the end is logged")
        wait_until(lambda: '"engine available"' in running.log.getvalue(), "the engine is back")
        events = [json.loads(line)["event"] for line in running.take_log().splitlines()]
        assert events.index("request ended") < events.index("engine available")


def test_a_crash_loop_is_called_one(server: ServerThread) -> None:  # LIFE-2
    for _ in range(3):
        server.kill_engine()
        wait_until(lambda: engine_state(server.admin_port)["process_id"] is None, "it is seen to have ended")
        condition = engine_state(server.admin_port)["condition"]
        server.call(server.running.supervisor.restart)
        server.wait_ready()
    assert condition.startswith("crash loop, ")
    assert condition.endswith("it was killed by SIGKILL")


@pytest.fixture(scope="module")
def impatient() -> Iterator[ServerThread]:
    with ServerThread("scripted", engine__stall_timeout_s=1.0, server__heartbeat_s=0.02) as running:
        chat(running)
        yield running


def test_an_engine_that_answers_and_makes_no_step_is_replaced(impatient: ServerThread) -> None:  # DL-5
    """The script pauses; pings are answered and heartbeats go out all the while."""
    before, counted = impatient.rest(), read_metrics(impatient.admin_port)
    caller = Caller(impatient.port, STREAM)
    caller.read_before()
    caller.read_rest()
    stream = caller.stream()
    assert ([error["code"] for error in stream.errors], stream.num_done) == (["engine_lost"], 0)
    assert caller.answer is not None
    assert b": ping" in caller.answer.body
    caller.client.close()
    wait_until(lambda: read_metrics(impatient.admin_port).since(counted, "engine_stalls_total") == 1, "it is counted")
    impatient.wait_ready()
    assert chat(impatient, "new").status == 200
    impatient.wait_back(before)


def test_an_engine_that_is_stopped_is_replaced(impatient: ServerThread) -> None:  # DL-5 LIFE-2
    before, counted = impatient.rest(), read_metrics(impatient.admin_port)
    process_id = impatient.look(lambda: impatient.running.supervisor.process_id)
    assert process_id is not None
    os.kill(process_id, signal.SIGSTOP)
    answer = chat(impatient)
    assert (answer.status, answer.json()["error"]["code"]) == (502, "engine_lost")
    wait_until(lambda: read_metrics(impatient.admin_port).since(counted, "engine_stalls_total") == 1, "it is counted")
    impatient.wait_ready()
    assert chat(impatient).status == 200
    impatient.wait_back(before)


def test_an_engine_with_nothing_to_do_or_with_held_requests_only_is_left_alone(impatient: ServerThread) -> None:
    epoch = engine_state(impatient.admin_port)["epoch"]
    supervisor = impatient.running.supervisor
    begun = impatient.look(lambda: supervisor.engine.num_heard)
    # It answers one ping a tick: two more than the patience has ticks.
    wait_until(lambda: impatient.look(lambda: supervisor.engine.num_heard) >= begun + 6, "the patience is over")
    assert engine_state(impatient.admin_port)["epoch"] == epoch


HOSTILE: list[tuple[str, str, Any]] = [
    ("POST", Route.CHAT.value, ask(Route.CHAT)),
    ("POST", Route.CHAT.value, ask(Route.CHAT, stream=True)),
    ("POST", Route.COMPLETIONS.value, ask(Route.COMPLETIONS, n=3)),
    ("POST", "/v1/tokenize", {"model": "scripted", "prompt": "a"}),
    ("POST", Route.CHAT.value, b"{"),
    ("GET", "/v1/models", None),
    ("GET", "/health", None),
    ("GET", "/healthz", None),
]


def check_calm(server: ServerThread, *, code: str) -> None:
    for method, path, body in HOSTILE:
        answer = request(server.port, method, path, body)
        assert answer.status in (200, 400, 503), (path, answer)
        if answer.status == 503:
            assert answer.json()["error"]["code"] in (code, "engine_unavailable")
            assert 1 <= int(answer.headers["retry-after"]) <= 120
    for path in ("/readyz", "/metrics", "/admin/v1/requests", "/admin/v1/engine"):
        assert request(server.admin_port, "GET", path).status in (200, 503)
    assert "Traceback" not in server.take_log()
    assert '"level":"critical"' not in server.take_log()


async def freeze_start(supervisor: Supervisor, old: int | None) -> None:
    """Stops the next engine process before it can say anything."""
    while supervisor.process_id in (None, old):
        await asyncio.sleep(0)
    assert supervisor.process_id is not None
    os.kill(supervisor.process_id, signal.SIGSTOP)


def thaw(supervisor: Supervisor) -> None:
    assert supervisor.process_id is not None
    os.kill(supervisor.process_id, signal.SIGCONT)


def test_before_its_engine_has_ever_answered_a_server_is_alive_and_not_ready() -> None:  # LIFE-3 SEC-24
    settings = resolve(
        None, {}, {"engine.kind": "scripted", "server.port": 0, "server.admin_port": 0}, is_file_required=False
    ).settings
    logger = build_logger(LogSettings("info", LogFormat.JSON), io.StringIO(), SystemClock().wall)

    def look(server: RunningServer) -> None:
        ready = read_ready(server.admin.port)
        assert (ready.status, ready.json()["error"]["message"]) == (503, "the engine is starting")
        assert request(server.public.port, "GET", "/healthz").status == 200
        for path in (Route.CHAT, Route.COMPLETIONS):
            refused = request(server.public.port, "POST", path.value, ask(path))
            assert (refused.status, refused.json()["error"]["code"]) == (503, "engine_unavailable")
            assert 1 <= int(refused.headers["retry-after"]) <= 120
        assert request(server.admin.port, "POST", "/admin/v1/cache/flush").status == 503

    async def main() -> None:
        server = RunningServer(settings, load_models(settings), Sockets(settings), logger)
        try:
            await server.start()
            await freeze_start(server.supervisor, None)
            await asyncio.to_thread(look, server)
            thaw(server.supervisor)
            await server.wait_ready()
            assert (await asyncio.to_thread(read_ready, server.admin.port)).status == 200
        finally:
            await server.stop()

    asyncio.run(main())


def test_requests_while_the_engine_starts_are_told_to_come_again(server: ServerThread) -> None:  # LIFE-3 SEC-24
    supervisor = server.running.supervisor

    async def hold_the_start() -> None:
        """Restarts, and stops the new process before it can say anything."""
        old = supervisor.process_id
        restart = asyncio.create_task(supervisor.restart())
        while supervisor.process_id in (None, old):
            await asyncio.sleep(0)
        assert supervisor.process_id is not None
        os.kill(supervisor.process_id, signal.SIGSTOP)
        await restart

    server.call(hold_the_start)
    ready = read_ready(server.admin_port)
    assert ready.status == 503
    assert ready.json()["error"]["message"] == "the engine is starting again: a restart was asked for"
    assert request(server.port, "GET", "/healthz").status == 200
    refused = chat(server)
    assert (refused.status, refused.json()["error"]["code"]) == (503, "engine_unavailable")
    check_calm(server, code="engine_unavailable")
    thaw(supervisor)
    server.wait_ready()
    assert chat(server).status == 200


def test_requests_during_a_death_and_a_drain_never_crash() -> None:  # SEC-24
    with ServerThread("scripted", engine__restart_wait_s=STAY_DOWN_S, server__drain_timeout_s=0.1) as running:
        chat(running)
        running.kill_engine()
        wait_until(lambda: read_ready(running.admin_port).status == 503, "it is down")
        check_calm(running, code="engine_unavailable")
        revive(running)
        running.call(running.running.drain)
        check_calm(running, code="server_draining")
