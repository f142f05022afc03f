"""Two engines on two nodes of a Ray cluster, many streams, and one engine killed among them."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psutil
import pytest

from harness.event_stream import Stream, read_stream
from harness.faults import Route, ask, hex_pieces
from harness.pool_view import engine_rows
from harness.raw_http import RawClient
from harness.ray_cluster import RayClusterProcess
from harness.server_thread import ServerThread, wait_until
from harness.server_view import live_requests
from tidegate.cli.ray_keeper import RayKeeper

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

PATIENCE_S = 60.0
PAUSE_S = 6.0
TEXT = "the tide comes in"
STARTED = {"pieces": hex_pieces("the ", "tide ", "comes in"), "delays_s": [0.0, PAUSE_S, 0.0]}
"""A beginning, and the rest after a pause."""
UNSTARTED = {"pieces": hex_pieces(TEXT), "prefill_delay_s": PAUSE_S}
QUICK = {"pieces": hex_pieces(TEXT), "repeat": 20, "delays_s": [0.01]}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    """Each node has room for one engine."""
    with RayClusterProcess(num_cpus=1, has_nodes=True) as cluster:
        cluster.add_node(num_cpus=1)
        settings: dict[str, Any] = {
            "ray__address": cluster.address,
            "engine__ray_engine": "scripted",
            "engine__ray_num_cpus": 1,
            "engine__replicas": 2,
            "engine__max_sequences": 64,
            "engine__restart_wait_s": 0.05,
        }
        with ServerThread("ray", **settings) as running:
            wait_ready(running)
            yield running


def wait_ready(server: ServerThread) -> None:
    wait_until(lambda: all(row["ready"] for row in engine_rows(server.admin_port).values()), "both", PATIENCE_S)


def process_of(server: ServerThread, name: str) -> int:
    keeper = server.running.fleet.keepers[name]
    assert isinstance(keeper, RayKeeper)
    return server.call(keeper.identify).process_id


def output_tokens(server: ServerThread) -> dict[str, int]:
    """Returns the tokens that each engine has generated since it started."""
    keepers = server.running.fleet.keepers
    return {name: keeper.engine.statistics().gauges.num_output_tokens for name, keeper in keepers.items()}


def open_streams(stack: ExitStack, server: ServerThread, script: dict[str, Any], number: int) -> list[RawClient]:
    clients = [stack.enter_context(RawClient(server.port)) for _ in range(number)]
    for client in clients:
        client.post(Route.CHAT.value, ask(Route.CHAT, script, stream=True))
    return clients


def read(clients: list[RawClient]) -> list[Stream]:
    return [read_stream(client.read_answer().body) for client in clients]


def assert_all_answer(server: ServerThread, number: int) -> None:
    """Asks for so many streams at once."""
    with ExitStack() as stack:
        for stream in read(open_streams(stack, server, QUICK, number)):
            assert (stream.content(0), stream.num_done) == (TEXT * 20, 1)


def test_engines_lie_on_different_nodes(server: ServerThread) -> None:
    parents = {psutil.Process(process_of(server, name)).ppid() for name in engine_rows(server.admin_port)}
    assert len(parents) == 2
    assert {psutil.Process(parent).name() for parent in parents} == {"raylet"}


def test_of_64_streams_those_of_a_killed_engine_go_on_elsewhere_or_end_once_and_a_new_engine_joins(
    server: ServerThread,
) -> None:
    assert_all_answer(server, 64)
    with ExitStack() as stack:
        started = open_streams(stack, server, STARTED, 32)
        unstarted = open_streams(stack, server, UNSTARTED, 32)
        wait_until(
            lambda: (
                sorted(one["completion_tokens"] > 0 for one in live_requests(server.admin_port).values())
                == [False] * 32 + [True] * 32
            ),
            "half of them have begun",
        )
        os.kill(process_of(server, "engine-1"), signal.SIGKILL)
        begun, others = read(started), read(unstarted)
    for stream in others:
        assert (stream.content(0), stream.num_done, stream.errors) == (TEXT, 1, []), "another engine answers"
    for stream in begun:
        assert stream.num_done + len(stream.errors) == 1
        assert stream.content(0) == TEXT if stream.num_done else [e["code"] for e in stream.errors] == ["engine_lost"]
    assert {stream.num_done for stream in begun} == {0, 1}, "both engines had some"
    wait_ready(server)
    assert live_requests(server.admin_port) == {}
    before = output_tokens(server)
    assert_all_answer(server, 64)
    wait_until(lambda: all(now > before[name] for name, now in output_tokens(server).items()), "both work again")
