"""Two server processes on one engine keep the promises of one: bounds, quotas and fairness have one owner."""

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.keys import add_key, bearing
from harness.raw_http import RawClient, request
from harness.server_process import ServerProcess
from harness.server_thread import wait_until
from tidegate.lifecycle.principal import Quotas

pytestmark = pytest.mark.process

CHAT = "/v1/chat/completions"
SHORT = {"pieces": ["61", "62"]}
ENDLESS = {"pieces": ["61", "62"], "delays_s": [0, 60]}


def body(script: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "x_script": script, **fields}


def live(server: ServerProcess) -> list[dict[str, Any]]:
    return list(request(server.admin_port, "GET", "/admin/v1/requests").json()["data"])


def admission(server: ServerProcess) -> dict[str, Any]:
    return dict(request(server.admin_port, "GET", "/admin/v1/engine").json()["admission"])


@contextmanager
def calling(
    server: ServerProcess, count: int, script: dict[str, Any], key: str | None = None
) -> Iterator[list[RawClient]]:
    """So many streams on connections of their own, asked for and not read; closed at the end."""
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(server.port)) for _ in range(count)]
        for client in clients:
            client.post(CHAT, body(script, stream=True), headers=None if key is None else bearing(key))
        yield clients


def num_held(server: ServerProcess) -> int:
    accounts = admission(server)
    return int(accounts["num_waiting"] + accounts["num_requests"])


def statuses(server: ServerProcess, count: int, script: dict[str, Any], headers: dict[str, str]) -> Counter[Any]:
    """Returns (status, limit name) of so many calls at once, each on a connection of its own."""

    def call(_: int) -> tuple[int, str | None]:
        answer = request(server.port, "POST", CHAT, body(script), headers=headers)
        limit = json.loads(answer.body).get("error", {}).get("limit")
        return answer.status, None if limit is None else f"{limit['scope']} {limit['name']}"

    with ThreadPoolExecutor(count) as pool:
        return Counter(pool.map(call, range(count)))


def test_the_queue_is_one_for_all_processes() -> None:  # OVL-1
    bounds = {"engine__max_sequences": 2, "admission__queue_depth": 3}
    with ServerProcess("scripted", server__workers=2, **bounds) as server:
        with calling(server, 12, ENDLESS):
            wait_until(lambda: admission(server)["refusals"].get("queue_depth") == 7, "seven refusals")
            assert len(live(server)) == 5
            assert admission(server)["num_sequences"] <= 3, "what is in the engine, with one to look ahead"
        wait_until(lambda: admission(server)["num_requests"] == 0, "everything given back")
        assert admission(server)["num_waiting"] == 0


def test_quotas_of_a_key_are_counted_over_all_processes(tmp_path: Path) -> None:  # RL-1
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    per_minute = add_key(state, "per minute", quotas=Quotas(requests_per_minute=5))
    at_once = add_key(state, "at once", quotas=Quotas(concurrency=2))
    with ServerProcess("scripted", server__workers=2, server__state_dir=state) as server:
        seen = statuses(server, 12, SHORT, bearing(per_minute))
        assert seen == {(200, None): 5, (429, "key requests_per_minute"): 7}
        with calling(server, 8, ENDLESS, at_once) as clients:
            assert Counter(client.read_head().status for client in clients) == {200: 2, 429: 6}
            assert len(live(server)) == 2
        wait_until(lambda: admission(server)["num_slots"] == 0, "the slots given back")


def test_a_process_that_dies_gives_back_what_it_held() -> None:  # DL-2
    with ServerProcess("scripted", server__workers=2, engine__max_sequences=2) as server:
        with calling(server, 6, ENDLESS):
            wait_until(lambda: num_held(server) == 6, "all known")
            for process in psutil.Process(server.process_id).children():
                if "tidegate.cli.worker" in process.cmdline():
                    os.kill(process.pid, signal.SIGKILL)
            wait_until(lambda: num_held(server) == 0, "all given back")
        wait_until(lambda: request(server.port, "GET", "/health").status == 200, "a new process", timeout_s=60)
        assert request(server.port, "POST", CHAT, body(SHORT)).status == 200


def test_a_key_with_many_requests_does_not_starve_a_key_with_one(tmp_path: Path) -> None:  # OVL-5
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    greedy, modest = add_key(state, "greedy"), add_key(state, "modest")
    slow = {"pieces": ["61"] * 4, "delays_s": [0.05]}
    with (
        ServerProcess("scripted", server__workers=2, server__state_dir=state, engine__max_sequences=1) as server,
        calling(server, 40, slow, greedy),
    ):
        wait_until(lambda: admission(server)["num_entered"] >= 40, "all of them known")
        assert request(server.port, "POST", CHAT, body(slow), headers=bearing(modest)).status == 200
        assert num_held(server) >= 20, "most of the greedy key's requests still wait"
