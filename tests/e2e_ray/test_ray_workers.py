"""One server of two processes before engines on Ray: both use the same ones, and the death of one is its own."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import psutil
import pytest

from harness.event_stream import read_stream
from harness.faults import Route, ask, hex_pieces
from harness.pool_view import act, add, engine_rows
from harness.raw_http import Answer, RawClient, request
from harness.ray_cluster import RayClusterProcess
from harness.ray_view import RayView
from harness.server_process import ServerProcess
from harness.server_thread import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

PATIENCE_S = 60.0
LEASE_S = 3.0
NUM_TOKENS = 100_000
ENDLESS = {"pieces": hex_pieces("tide "), "repeat": NUM_TOKENS, "delays_s": [0.05]}


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayClusterProcess]:
    with RayClusterProcess() as running:
        yield running


@pytest.fixture
def view(cluster: RayClusterProcess) -> Iterator[RayView]:
    with RayView(cluster.address, "workers") as looking:
        yield looking
        wait_until(lambda: looking.is_empty, "nothing is left in Ray", PATIENCE_S)


@pytest.fixture
def program(cluster: RayClusterProcess, view: RayView) -> Iterator[ServerProcess]:
    with ServerProcess(
        "ray",
        server__workers=2,
        ray__address=cluster.address,
        ray__namespace="workers",
        ray__lease_s=LEASE_S,
        ray__heartbeat_s=0.1,
        engine__ray_engine="scripted",
        engine__ray_num_cpus=0.1,
        engine__max_replicas=2,
        pool__scale_up_tokens=1_000_000,
        pool__scale_down_wait_s=3600.0,
    ) as running:
        yield running
        running.signal()
        assert running.wait() == 0


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


def test_a_killed_server_process_leaves_the_others_requests_and_its_own_end_with_its_lease(
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
        assert view.facts(actor).num_active == sum(map(len, held.values())), "nobody has told the actor"
        wait_until(lambda: view.facts(actor).num_active == len(others), "they end with the lease", PATIENCE_S)
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
