"""A request that an engine dies with again and again is refused, and its neighbours are not."""

import os
import signal

import pytest

from harness.faults import Caller, Cell, Phase, Route, ask, hex_pieces
from harness.pool_view import engine_rows
from harness.raw_http import RawClient, request
from harness.server_process import ServerProcess
from harness.server_thread import ServerThread, wait_until
from harness.server_view import engine_state, live_requests, read_metrics

pytestmark = pytest.mark.process

POISON = Cell(Phase.PREFILL, Route.CHAT, is_stream=False)
CHAT = Route.CHAT.value


def kill_with(server: ServerThread, *callers: Caller) -> None:
    for caller in callers:
        caller.read_before()
    wait_until(lambda: len(live_requests(server.admin_port)) == len(callers), "they are in the engine")
    wait_until(lambda: engine_state(server.admin_port)["gauges"]["num_running"] == len(callers), "and run")
    server.kill_engine()
    for caller in callers:
        caller.read_rest()
        caller.client.close()
    server.wait_ready()


def test_what_killed_the_engine_twice_is_refused_and_others_are_served() -> None:
    with ServerThread("scripted", engine__restart_wait_s=0.01) as server:
        before = server.rest()
        stream = Cell(Phase.DECODE, Route.CHAT, is_stream=True)
        for _ in range(2):
            kill_with(server, Caller(server.port, POISON), Caller(server.port, stream))
        state = engine_state(server.admin_port)
        assert (state["poison_suspects"], state["poison_refusals"]) == (2, 0)
        third = Caller(server.port, POISON)
        refused = third.read_rest()
        third.client.close()
        assert (refused.status, refused.json()["error"]["code"]) == (502, "engine_refused")
        assert "for a while" in refused.json()["error"]["message"]
        with RawClient(server.port) as client:
            client.post(CHAT, stream.body())
            assert client.read_head().status == 200, "the stream that ran beside it is let in"
        ok = request(server.port, "POST", CHAT, ask(Route.CHAT, {"pieces": hex_pieces("fine")}))
        assert ok.json()["choices"][0]["message"]["content"] == "fine"
        assert engine_state(server.admin_port)["poison_refusals"] == 1
        assert read_metrics(server.admin_port).value("poison_refusals_total") == 1
        assert read_metrics(server.admin_port).value("poison_suspects") == 2
        server.wait_back(before)


def kill_beneath(program: ServerProcess, num_callers: int) -> list[str]:
    """So many callers ask for the same, over both server processes, when their engine is killed; returns the codes."""
    callers = [Caller(program.port, POISON, headers={"X-Request-Id": f"c{i}"}) for i in range(num_callers)]

    def are_in_the_engine() -> bool:
        return {one["work"] for one in live_requests(program.admin_port).values()} == {"running"}

    wait_until(lambda: len(live_requests(program.admin_port)) == num_callers, "they are in the server")
    wait_until(are_in_the_engine, "and in the engine")
    os.kill(engine_state(program.admin_port)["process_id"], signal.SIGKILL)
    codes = [caller.read_rest().json()["error"]["code"] for caller in callers]
    for caller in callers:
        caller.client.close()
    wait_until(
        lambda: all(row["ready"] for row in engine_rows(program.admin_port).values()), "both have reached the next"
    )
    return codes


def test_one_death_under_several_server_processes_is_one_and_the_next_is_another() -> None:
    with ServerProcess("scripted", server__workers=2, engine__restart_wait_s=0.01) as program:
        for _ in range(2):
            assert set(kill_beneath(program, 8)) == {"engine_lost"}
        for _ in range(4):
            refused = request(program.port, "POST", CHAT, POISON.body())
            assert (refused.status, refused.json()["error"]["code"]) == (502, "engine_refused")
