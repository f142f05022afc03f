"""Engines on Ray that join a running server, retire from it and are rolled, by an operator and by the load, with one
server process and with two: no stream is cut, and nothing stays in Ray.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psutil
import pytest
from click.testing import CliRunner

from harness.event_stream import read_stream
from harness.faults import Caller, Cell, Phase, Route, ask, hex_pieces
from harness.pool_view import act, add, engine_rows
from harness.raw_http import Answer, RawClient, request
from harness.ray_cluster import RayClusterProcess
from harness.ray_view import RayView
from harness.server_process import ServerProcess
from harness.server_thread import ServerThread, wait_until
from harness.server_view import read_metrics
from tidegate.cli.main import cli
from tidegate.cli.ray_keeper import RayKeeper
from tidegate.engines.life.start_failed import EngineStartFailed

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

PATIENCE_S = 60.0
PAUSE_S = 1.5
STREAMS = tuple(Cell(phase, Route.CHAT, is_stream=True) for phase in (Phase.PREFILL, Phase.DECODE) for _ in range(3))
ENDLESS = {"pieces": hex_pieces("tide "), "repeat": 100_000, "delays_s": [0.05]}


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayClusterProcess]:
    with RayClusterProcess(num_cpus=4) as running:
        yield running


@pytest.fixture
def view(cluster: RayClusterProcess) -> Iterator[RayView]:
    """Each test leaves Ray as it found it."""
    with RayView(cluster.address, "pool") as looking:
        yield looking
        looking.check_empty()


SETTINGS: dict[str, Any] = {
    "ray__namespace": "pool",
    "ray__heartbeat_s": 0.1,
    "ray__lease_s": 6.0,
    "engine__ray_engine": "scripted",
    "engine__ray_num_cpus": 0.5,
    "engine__restart_wait_s": 0.05,
    "pool__scale_up_tokens": 1_000_000,
    "pool__scale_down_wait_s": 3600.0,
}
"""A number of engines that moves by an operator's word alone, unless a test says otherwise."""


def serve(cluster: RayClusterProcess, **settings: Any) -> ServerThread:
    """Each engine takes more than a third of the cluster: there is no room for a third."""
    placed = {"ray__address": cluster.address, "engine__ray_bundles": ("CPU=1.5",)}
    return ServerThread("ray", **(SETTINGS | placed | settings))


@pytest.fixture
def program(cluster: RayClusterProcess, view: RayView) -> Iterator[ServerProcess]:
    """One server of two processes."""
    own: dict[str, Any] = {**SETTINGS, "server__workers": 2, "engine__max_replicas": 2}
    with ServerProcess("ray", ray__address=cluster.address, **own) as running:
        yield running
        running.signal()
        assert running.wait() == 0, "".join(running.lines[-40:])


def run_cli(server: ServerThread, *words: str) -> tuple[int, str]:
    found = CliRunner().invoke(cli, ["engines", *words, "--admin-url", server.admin_url])
    return found.exit_code, found.output


def begin(server: ServerThread, pause_s: float = PAUSE_S) -> list[Caller]:
    """Asks for some streams; returns when the engines have all of them."""
    callers = [Caller(server.port, cell, pause_s=pause_s) for cell in STREAMS]
    wait_until(
        lambda: sum(row["requests"] for row in engine_rows(server.admin_port).values()) == len(STREAMS),
        "the engines have them",
    )
    return callers


def finish(callers: list[Caller]) -> None:
    """Reads every stream to its end, which is its own, and the only one."""
    for caller in callers:
        assert caller.read_rest().is_complete
        stream = caller.stream()
        assert (caller.text(), stream.num_done, stream.errors) == (caller.cell.text, 1, [])
        caller.client.close()


def assert_serves(server: ServerThread, text: str = "x") -> None:
    body = ask(Route.CHAT, {"pieces": hex_pieces(text)})
    assert request(server.port, "POST", Route.CHAT.value, body).json()["choices"][0]["message"]["content"] == text


def serves_whole(server: ServerThread) -> bool:
    """Whether every engine serves, and none is on trial. Sends a request."""
    assert_serves(server)
    return set(states(server).values()) == {"ready"}


def states(server: ServerThread) -> dict[str, str]:
    return {name: row["state"] for name, row in engine_rows(server.admin_port).items()}


def keeper_of(server: ServerThread, name: str) -> RayKeeper:
    keeper = server.running.fleet.keepers[name]
    assert isinstance(keeper, RayKeeper)
    return keeper


def actor_of(server: ServerThread, name: str) -> str:
    return keeper_of(server, name).actor


def retire_all(*servers: ServerThread) -> None:
    """The end of shared engines: the last server ends them."""
    for server in servers:
        for name in server.running.fleet.keepers:
            server.call(keeper_of(server, name).retire)


def rolled(server: ServerThread) -> dict[str, Any]:
    told: dict[str, Any] = request(server.admin_port, "GET", "/admin/v1/engines/roll").json()
    return told


def chat(program: ServerProcess, text: str) -> Answer:
    return request(program.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces(text)}))


def workers(program: ServerProcess) -> dict[int, psutil.Process]:
    """Returns the server processes by their ids."""
    children = psutil.Process(program.process_id).children()
    return {one.pid: one for one in children if "tidegate.cli.worker" in one.cmdline()}


def worker_of(program: ServerProcess, client: RawClient) -> int:
    """Returns the id of the process that has a client's connection."""
    port = client.sock.getsockname()[1]
    for one in workers(program).values():
        if any(each.raddr and each.raddr.port == port for each in one.net_connections("tcp")):
            return one.pid
    raise AssertionError("no server process has the connection")


def open_streams(stack: ExitStack, program: ServerProcess) -> dict[int, list[RawClient]]:
    """Opens endless streams until each process has some; returns them by the processes' ids."""
    held: dict[int, list[RawClient]] = {one: [] for one in workers(program)}
    while min(map(len, held.values())) < 2:
        client = stack.enter_context(RawClient(program.port))
        client.post(Route.CHAT.value, ask(Route.CHAT, ENDLESS, stream=True))
        assert client.read_head().status == 200
        held[worker_of(program, client)].append(client)
        assert sum(map(len, held.values())) < 60, "the kernel gives both of them some"
    return held


def read_on(client: RawClient) -> str:
    """Reads some more of a stream; returns its text."""
    body = b"".join(client.read_chunk() or b"" for _ in range(10))
    return read_stream(body).content(0)


def test_an_engine_joins_one_retires_without_a_cut_stream_and_all_of_it_has_left_ray(
    cluster: RayClusterProcess, view: RayView
) -> None:
    with serve(cluster, engine__max_replicas=4) as server:
        first = actor_of(server, "engine-1")
        assert (view.actors(), view.bundles()) == ({first}, {f"{first}-bundles"})
        assert run_cli(server, "add", "--wait", "60") == (0, "engine-2: ready\n")
        second = actor_of(server, "engine-2")
        assert view.actors() == {first, second}
        callers = begin(server)
        assert min(row["requests"] for row in engine_rows(server.admin_port).values()) > 0, "both work"
        status, told = act(server.admin_port, "engine-1", "retire")
        assert (status, told["state"], told["requests"] > 0) == (202, "retiring", True)
        finish(callers)
        wait_until(lambda: states(server) == {"engine-2": "ready"}, "it has left")
        wait_until(lambda: (view.actors(), view.bundles()) == ({second}, {f"{second}-bundles"}), "it has left Ray")
        assert_serves(server)


def test_a_roll_starts_every_engine_anew_and_cuts_no_stream(cluster: RayClusterProcess, view: RayView) -> None:
    with serve(cluster, engine__replicas=2) as server:
        boots = {name: view.facts(actor_of(server, name)).boot for name in states(server)}
        callers = begin(server)
        counted = read_metrics(server.admin_port)
        code, words = run_cli(server, "roll", "--ready", "60")
        assert (code, words.startswith("draining, ")) == (0, True)
        finish(callers)
        wait_until(lambda: rolled(server)["state"] == "done", "the end of the roll", PATIENCE_S)
        assert rolled(server)["done"] == ["engine-1", "engine-2"]
        assert {row["epoch"] for row in engine_rows(server.admin_port).values()} == {2}
        assert {name: view.facts(actor_of(server, name)).boot for name in states(server)} == boots, "actors stay"
        assert read_metrics(server.admin_port).since(counted, "requests_failed_total") == 0
        assert_serves(server)


def test_a_roll_waits_for_what_other_servers_have_in_an_engine(cluster: RayClusterProcess, view: RayView) -> None:
    shared: dict[str, Any] = {"ray__detached": True, "engine__replicas": 2}
    with serve(cluster, **shared) as one, serve(cluster, **shared) as other:
        callers = begin(other, 3.0)
        code, words = run_cli(one, "roll", "--ready", "60", "--wait", "60")
        assert (code, words) == (0, "done, 2 done, 0 left\n")
        finish(callers)
        assert {row["epoch"] for row in engine_rows(other.admin_port).values()} == {2}
        wait_until(lambda: serves_whole(other), "both serve the other server again", PATIENCE_S)
        callers = begin(other, 30.0)
        code, words = run_cli(one, "roll", "--ready", "0.5", "--wait", "60")
        assert (code, "Other servers still had requests in the engine after 0.5 s" in words) == (1, True), words
        assert sum(row["requests"] for row in engine_rows(other.admin_port).values()) == len(STREAMS)
        for caller in callers:
            caller.client.close()
        assert_serves(one)
        retire_all(one, other)


def test_a_shared_engine_ends_with_the_last_server_that_retires_it(cluster: RayClusterProcess, view: RayView) -> None:
    shared: dict[str, Any] = {"ray__detached": True, "engine__replicas": 2}
    with serve(cluster, **shared) as one, serve(cluster, **shared) as other:
        boot = view.facts("tidegate-engine-1").boot
        callers = begin(other)
        assert run_cli(one, "retire", "engine-1", "--wait", "60") == (0, "engine-1: gone, 0 requests left\n")
        assert view.facts("tidegate-engine-1").boot == boot, "the other server uses it"
        finish(callers)
        assert run_cli(other, "retire", "engine-1", "--wait", "60") == (0, "engine-1: gone, 0 requests left\n")
        assert view.actors() == {"tidegate-engine-2"}
        wait_until(lambda: view.bundles() == {"tidegate-engine-2-bundles"}, "its bundles are given up")
        assert_serves(one)
        assert_serves(other)
        retire_all(one, other)


def test_an_engine_that_finds_no_machine_or_cannot_start_leaves_nothing_in_ray(
    cluster: RayClusterProcess, view: RayView
) -> None:
    with serve(cluster, engine__max_replicas=4) as server:
        assert add(server.admin_port, {"wait_s": 60})[0] == 200
        status, told = add(server.admin_port, {"wait_s": 0.5})
        assert (status, told["state"]) == (202, "starting")
        third = actor_of(server, "engine-3")
        wait_until(lambda: third in view.actors(), "Ray is asked for it", PATIENCE_S)
        wait_until(
            lambda: "Ray looks for a place with CPU=1.5" in engine_rows(server.admin_port)["engine-3"]["condition"],
            "the engine says what it waits for",
            PATIENCE_S,
        )
        status, told = act(server.admin_port, "engine-3", "retire", {"wait_s": 60})
        assert (status, told["state"]) == (200, "gone")
        wait_until(lambda: not {third, f"{third}-bundles"} & (view.actors() | view.bundles()), "nothing is left of it")
        assert_serves(server)


def test_a_server_that_wants_another_engine_of_that_name_does_not_start_and_ends_nothing(
    cluster: RayClusterProcess, view: RayView
) -> None:
    with serve(cluster, ray__detached=True) as theirs:
        boot = view.facts("tidegate-engine").boot
        with pytest.raises(EngineStartFailed, match="other settings"):
            serve(cluster, ray__detached=True, engine__max_sequences=7).__enter__()
        assert view.facts("tidegate-engine").boot == boot
        assert_serves(theirs)
        retire_all(theirs)


def test_the_number_of_engines_follows_the_queue_up_and_down(cluster: RayClusterProcess, view: RayView) -> None:
    load: dict[str, Any] = {
        "engine__max_replicas": 2,
        "engine__max_sequences": 1,
        "pool__scale_up_tokens": 1,
        "pool__scale_down_tokens": 1,
        "pool__scale_up_wait_s": 0.0,
        "pool__scale_down_wait_s": 0.2,
    }
    with serve(cluster, **load) as server:
        callers = [Caller(server.port, cell, pause_s=PAUSE_S) for cell in STREAMS]
        wait_until(lambda: len(view.actors()) == 2, "a second engine is placed", PATIENCE_S)
        wait_until(lambda: states(server) == {"engine-1": "ready", "engine-2": "ready"}, "it serves", PATIENCE_S)
        finish(callers)
        wait_until(lambda: len(states(server)) == 1, "one retires", PATIENCE_S)
        wait_until(lambda: len(view.actors()) == len(view.bundles()) == 1, "it has left Ray", PATIENCE_S)
        counted = read_metrics(server.admin_port)
        assert (counted.total("requests_failed_total"), counted.total("request_success_total")) == (0, len(STREAMS))


def test_a_killed_server_process_leaves_the_others_requests_and_its_own_are_aborted(
    program: ServerProcess, view: RayView
) -> None:
    (actor,) = view.actors()
    before = view.facts(actor)
    assert (before.num_active, before.num_servers) == (0, 3), "both, and the one that keeps the engines"
    with ExitStack() as stack:
        held = open_streams(stack, program)
        assert view.facts(actor).num_active == sum(map(len, held.values()))
        (killed, gone), (_, others) = held.items()
        os.kill(killed, signal.SIGKILL)
        for client in gone:
            with pytest.raises(ConnectionError):
                while client.read_chunk():
                    pass
        wait_until(lambda: view.facts(actor).num_active == len(others), "they are aborted", PATIENCE_S)
        for client in others:
            assert set(read_on(client).split()) == {"tide"}
        wait_until(lambda: view.facts(actor).num_servers == 3, "the next process uses the engine", PATIENCE_S)
        assert view.facts(actor).boot == before.boot
    wait_until(lambda: view.facts(actor).num_active == 0, "those that leave are aborted", PATIENCE_S)
    assert chat(program, "after").status == 200


def test_engines_join_and_retire_in_all_server_processes(program: ServerProcess, view: RayView) -> None:
    (first,) = view.actors()
    status, told = add(program.admin_port, {"wait_s": 60})
    assert (status, told["engine"], told["state"]) == (200, "engine-2", "ready")
    (second,) = view.actors() - {first}
    assert view.facts(second).num_servers == 3
    status, told = act(program.admin_port, "engine-1", "retire", {"wait_s": 60})
    assert (status, told["state"]) == (200, "gone")
    assert view.actors() == {second}
    assert list(engine_rows(program.admin_port)) == ["engine-2"]
    assert {chat(program, f"t{i}").json()["choices"][0]["message"]["content"] for i in range(8)} == {
        f"t{i}" for i in range(8)
    }
    caller = Caller(program.port, STREAMS[-1], pause_s=5.0)
    caller.read_before()
    program.signal()
    finish([caller])
    assert program.wait() == 0, "the drain was as long as the stream, and Ray did not end it"
    assert not [line for line in program.lines if "SIGTERM received" in line]
