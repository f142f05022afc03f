"""Whole servers with their engines on a Ray cluster: what callers see when an actor, a client or a server fails."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.faults import CELLS, Caller, Cell, Phase, Route, are_resting, ask, hex_pieces
from harness.pool_view import engine_rows
from harness.raw_http import Answer, RawClient, request
from harness.ray_cluster import RayClusterProcess
from harness.server_process import ServerProcess
from harness.server_thread import ServerThread, wait_until
from harness.server_view import engine_state, live_requests
from tidegate.cli.doctor_ray import look_at_ray
from tidegate.cli.finding import Level
from tidegate.cli.model_loading import load_model
from tidegate.cli.ray_keeper import RayKeeper
from tidegate.cli.settings_sources import resolve
from tidegate.engines.ray.actor_door import ActorFacts

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

STREAM = Cell(Phase.DECODE, Route.CHAT, is_stream=True)
PAUSE_S = 4.0
PATIENCE_S = 60.0
LEASE_S = 6.0
BUFFER_BYTES = 4096
COMMON: dict[str, Any] = {
    "engine__ray_engine": "scripted",
    "engine__ray_num_cpus": 0.1,
    "engine__restart_wait_s": 0.05,
    "ray__namespace": "e2e",
    "ray__heartbeat_s": 0.1,
    "ray__lease_s": LEASE_S,
    "server__send_buffer_bytes": BUFFER_BYTES,
    "server__unsent_bytes": BUFFER_BYTES,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayClusterProcess]:
    with RayClusterProcess() as running:
        yield running


@pytest.fixture(scope="module")
def server(cluster: RayClusterProcess) -> Iterator[ServerThread]:
    with ServerThread("ray", ray__address=cluster.address, **COMMON) as running:
        yield running


def chat(port: int, text: str = "x") -> Answer:
    return request(port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces(text)}))


def assert_serves(server: ServerThread) -> None:
    wait_until(lambda: chat(server.port, "back").status == 200, "it serves again", PATIENCE_S)
    assert chat(server.port, "new").json()["choices"][0]["message"]["content"] == "new"


def facts(server: ServerThread, name: str = "engine") -> ActorFacts:
    keeper = server.running.fleet.keepers[name]
    assert isinstance(keeper, RayKeeper)
    return server.call(keeper.identify)


def begin(server: ServerThread, cells: tuple[Cell, ...], pause_s: float = 30.0) -> list[Caller]:
    callers = [Caller(server.port, cell, pause_s=pause_s) for cell in cells]
    for caller in callers:
        caller.read_before()
    wait_until(lambda: are_resting(server.admin_port, cells), "every request rests in its phase", PATIENCE_S)
    return callers


def assert_failed_once(caller: Caller) -> None:
    answer = caller.read_rest()
    if caller.cell.text_before:
        stream = caller.stream()
        assert ([error["code"] for error in stream.errors], stream.num_done) == (["engine_lost"], 0)
    else:
        assert (answer.status, answer.json()["error"]["code"]) == (502, "engine_lost")
        assert "ray" not in answer.body.decode().lower(), "Ray's words are the operator's affair"
    caller.client.close()


def kill(server: ServerThread) -> None:
    os.kill(facts(server).process_id, signal.SIGKILL)


def restart(server: ServerThread) -> None:
    answer = request(server.admin_port, "POST", "/admin/v1/engine/restart", {"wait_s": 60})
    assert (answer.status, answer.json()["status"]) == (200, "ready")


LOSSES: dict[str, Callable[[ServerThread], None]] = {"killed": kill, "restarted": restart}


@pytest.mark.parametrize("loss", LOSSES)
def test_each_client_of_a_lost_engine_gets_one_error_and_the_next_one_serves(server: ServerThread, loss: str) -> None:
    callers = begin(server, CELLS)
    epoch = engine_state(server.admin_port)["epoch"]
    LOSSES[loss](server)
    for caller in callers:
        assert_failed_once(caller)
    assert_serves(server)
    assert engine_state(server.admin_port)["epoch"] == epoch + 1
    wait_until(lambda: facts(server).num_active == 0, "nothing is left in the actor")
    assert live_requests(server.admin_port) == {}


def test_a_client_that_goes_is_gone_in_the_actor(server: ServerThread) -> None:
    (caller,) = begin(server, (STREAM,))
    assert facts(server).num_active == 1
    caller.client.close()
    wait_until(lambda: facts(server).num_active == 0, "the request is aborted in the actor")
    assert_serves(server)


def test_one_reader_that_stalls_among_many_is_held_and_the_others_are_not(server: ServerThread) -> None:
    num_tokens = 400
    script = {"pieces": hex_pieces("0123456789" * 12), "repeat": num_tokens, "finish": "eos", "delays_s": [0.0, 0.002]}
    body = ask(Route.CHAT, script, stream=True)
    with ExitStack() as stack:
        stalled = stack.enter_context(RawClient(server.port, receive_buffer_bytes=BUFFER_BYTES))
        stalled.post(Route.CHAT.value, body, {"X-Request-Id": "stalled"})
        others = [stack.enter_context(RawClient(server.port)) for _ in range(31)]
        for client in others:
            client.post(Route.CHAT.value, body)
        for client in others:
            stream = read_stream(client.read_answer().body)
            assert (stream.content(0), stream.num_done) == ("0123456789" * 12 * num_tokens, 1)
        held = live_requests(server.admin_port)["stalled"]
        assert held["completion_tokens"] < num_tokens
        wait_until(lambda: engine_state(server.admin_port)["gauges"]["num_held"] == 1, "the stalled one is held")
        stream = read_stream(stalled.read_answer().body)
        assert (stream.content(0), stream.num_done) == ("0123456789" * 12 * num_tokens, 1)


def test_a_drain_finishes_what_is_open_before_the_engine_ends(cluster: RayClusterProcess) -> None:
    with ServerThread("ray", ray__address=cluster.address, **COMMON) as running:
        (caller,) = begin(running, (STREAM,), pause_s=1.0)
        running.call(running.running.drain, PATIENCE_S)
        caller.read_rest()
        assert (caller.text(), caller.stream().num_done) == (STREAM.text, 1)
        caller.client.close()


def test_a_killed_servers_requests_are_aborted_within_its_lease(
    cluster: RayClusterProcess, server: ServerThread
) -> None:
    settings = COMMON | {"ray__address": cluster.address, "ray__detached": "true", "ray__name": "shared"}
    with ServerProcess("ray", **settings) as program:
        callers = [Caller(program.port, STREAM) for _ in range(4)]
        for caller in callers:
            caller.read_before()
        with ServerThread("ray", **(settings | {"ray__detached": True})) as other:
            assert [line for line in program.lines if not line.startswith(("tidegate:", "{", " "))] == [], (
                "Ray is quiet"
            )
            before = facts(other)
            assert (before.num_active, before.num_servers) == (4, 2)
            mine = Caller(other.port, STREAM)
            mine.read_before()
            program.signal(signal.SIGKILL)
            program.wait()
            wait_until(lambda: facts(other).num_servers == 1, "its lease has run out", PATIENCE_S)
            now = facts(other)
            assert (now.boot, now.num_active) == (before.boot, 1)
            mine.client.close()
            keeper = other.running.fleet.keepers["engine"]
            assert isinstance(keeper, RayKeeper)
            other.call(keeper.retire)
        for caller in callers:
            caller.client.close()
    assert_serves(server)


def test_what_had_sent_nothing_is_answered_by_the_other_engine(cluster: RayClusterProcess) -> None:
    with ServerThread("ray", ray__address=cluster.address, engine__replicas=2, **COMMON) as running:
        wait_until(lambda: all(row["ready"] for row in engine_rows(running.admin_port).values()), "both", PATIENCE_S)
        callers = begin(running, CELLS, PAUSE_S)
        os.kill(facts(running, "engine-1").process_id, signal.SIGKILL)
        for caller in callers:
            answer = caller.read_rest()
            if not caller.cell.num_tokens_before:
                assert answer.status == 200, "it had sent nothing: another engine answers"
            elif caller.cell.is_stream:
                stream = caller.stream()
                assert len(stream.errors) + stream.num_done == 1
            else:
                assert answer.status in (200, 502)
            caller.client.close()
        wait_until(lambda: all(row["ready"] for row in engine_rows(running.admin_port).values()), "both", PATIENCE_S)


DOCTORED: dict[str, tuple[dict[str, Any], Level, str]] = {
    "enough": ({}, Level.OK, "1 machines, 16 CPUs"),
    "never enough": ({"engine.ray_resources": ("unobtainium=1",)}, Level.WARNING, "unobtainium"),
}


@pytest.mark.parametrize("name", DOCTORED)
def test_the_doctor_looks_at_the_cluster(cluster: RayClusterProcess, name: str) -> None:
    flags, level, words = DOCTORED[name]
    named = {"engine.kind": "ray", "engine.ray_engine": "simulated", "ray.address": cluster.address, **flags}
    settings = resolve(None, {}, named, is_file_required=False).settings
    finding = look_at_ray(settings, load_model(settings), starts_engine=False)
    assert (finding.level, words in finding.found) == (level, True), finding
