"""Engines that are restarted one after the other: with another revision, alone, beside one that dies, and stopped."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.faults import Caller, Cell, Phase, Route
from harness.pool_view import act, add, engine_rows, signal_engine
from harness.raw_http import Answer, request
from harness.server_thread import ServerThread, wait_until
from harness.server_view import read_metrics, read_ready
from tidegate.cli import fleet_members
from tidegate.engine.options import EngineOptions
from tidegate.engines.local import supervisor
from tidegate.engines.local.process import engine_command

pytestmark = pytest.mark.process

SLOW = Cell(Phase.DECODE, Route.CHAT, is_stream=True)


@dataclass
class File:
    """Stands for the model's file: what engines that start from now on serve. After `num_good` starts none is ready."""

    model: str = "successor"
    num_good: int = 1000

    def command(self, options: EngineOptions, socket_path: Path, epoch: int) -> list[str]:
        self.num_good -= 1
        if self.num_good < 0:
            return ["sleep", "3600"]
        return engine_command(msgspec.structs.replace(options, simulated_model=self.model), socket_path, epoch)


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch) -> File:
    file = File()
    monkeypatch.setattr(supervisor, "engine_command", file.command)
    return file


def serve(kind: str = "simulated", **settings: Any) -> ServerThread:
    return ServerThread(kind, **({"engine__restart_wait_s": 0.01, "pool__eject_wait_s": 0.05} | settings))


def complete(server: ServerThread) -> Answer:
    body = {"model": server.model, "prompt": "a", "max_tokens": 3, "temperature": 0}
    return request(server.port, "POST", "/v1/completions", body)


def roll(server: ServerThread, **body: float) -> tuple[int, dict[str, Any]]:
    answer = request(server.admin_port, "POST", "/admin/v1/engines/roll", body)
    return answer.status, answer.json()


def revisions(server: ServerThread) -> set[str]:
    return {row["revision"] for row in engine_rows(server.admin_port).values()}


def test_a_roll_to_a_revision_that_the_pool_does_not_serve_ends_with_the_first_engine(file: File) -> None:
    with serve(engine__replicas=2) as server:
        old = complete(server)
        file.model = "hash"
        status, told = roll(server, wait_s=60.0)
        assert (status, told["state"], told["done"], told["left"]) == (200, "aborted", [], ["engine-1", "engine-2"])
        assert "Engine engine-1 serves another revision than the rest of its pool" in told["reason"]
        assert "pool.rolling" in told["reason"]
        for _ in range(4):
            assert complete(server).json()["choices"] == old.json()["choices"], "the other one goes on as it is"
        assert [one["engine"] for one in read_ready(server.admin_port).json()["degraded"]] == ["engine-1"]
        status, told = add(server.admin_port, {"wait_s": 60})
        assert (status, "engine-3 did not join" in told["error"]["message"]) == (503, True)
        assert "another revision" in told["error"]["message"]
        assert sorted(engine_rows(server.admin_port)) == ["engine-1", "engine-2"]
        file.model = "successor"
        assert act(server.admin_port, "engine-1", "restart", {"wait_s": 60})[0] == 200
        wait_until(
            lambda: complete(server).status == 200 and "degraded" not in read_ready(server.admin_port).json(), ""
        )


def test_while_rolling_is_allowed_a_changed_revision_comes_engine_by_engine_and_nothing_fails(file: File) -> None:
    with serve(engine__replicas=2, pool__rolling=True) as server:
        old, texts = complete(server), {}
        counted = read_metrics(server.admin_port)
        file.model = "hash"
        with ThreadPoolExecutor(1) as threads:
            rolled = threads.submit(roll, server, wait_s=60.0)
            while not rolled.done():
                answer = complete(server)
                revision = answer.headers["tidegate-served-revision"]
                assert (answer.status, answer.json()["system_fingerprint"]) == (200, revision)
                texts.setdefault(revision, set()).add(answer.json()["choices"][0]["text"])
        assert rolled.result()[1]["state"] == "done"
        assert rolled.result()[1]["done"] == ["engine-1", "engine-2"]
        (new,) = revisions(server)
        assert new != old.headers["tidegate-served-revision"]
        assert set(texts) <= {new, old.headers["tidegate-served-revision"]}
        assert {len(one) for one in texts.values()} == {1}, "one text for each revision"
        assert complete(server).headers["tidegate-served-revision"] == new
        assert read_metrics(server.admin_port).since(counted, "requests_failed_total") == 0


def test_a_lone_engine_of_a_changed_file_is_rolled_only_where_both_revisions_may_be_served(file: File) -> None:
    with serve(engine__max_replicas=1) as server:
        old = complete(server)
        file.model = "hash"
        status, told = roll(server, wait_s=60.0)
        assert (status, told["state"], told["left"]) == (200, "aborted", ["engine-1"])
        assert "engine-2 did not join" in told["reason"]
        assert "another revision" in told["reason"]
        assert complete(server).json()["choices"] == old.json()["choices"]
        wait_until(lambda: list(engine_rows(server.admin_port)) == ["engine-1"], "who was to stand in is gone again")
        assert engine_rows(server.admin_port)["engine-1"]["state"] == "ready"


def test_a_lone_engine_has_one_beside_it_while_it_is_restarted_and_none_afterwards(file: File) -> None:
    with serve(engine__max_replicas=1, pool__rolling=True) as server:
        old, before = complete(server), engine_rows(server.admin_port)
        file.model = "hash"
        status, told = roll(server, wait_s=60.0)
        assert (status, told["state"], told["done"], told["left"]) == (200, "done", ["engine-1"], [])
        after = engine_rows(server.admin_port)
        assert list(after) == ["engine-1"]
        assert after["engine-1"]["process_id"] != before["engine-1"]["process_id"]
        assert complete(server).headers["tidegate-served-revision"] != old.headers["tidegate-served-revision"]
        assert read_metrics(server.admin_port).total("requests_failed_total") == 0


def test_who_was_to_stand_in_and_is_not_ready_in_time_is_taken_out_again(file: File) -> None:
    with serve(engine__max_replicas=2) as server:
        before = engine_rows(server.admin_port)["engine-1"]["process_id"]
        file.num_good = 0
        status, told = roll(server, ready_s=0.2, wait_s=60.0)
        assert (status, told["state"], told["left"]) == (200, "aborted", ["engine-1"])
        assert told["reason"] == "engine engine-2, which was to stand in, is starting after 0.2 s"
        wait_until(lambda: list(engine_rows(server.admin_port)) == ["engine-1"], "it is gone again")
        assert engine_rows(server.admin_port)["engine-1"]["process_id"] == before
        assert complete(server).status == 200


def test_who_stands_in_stays_where_the_other_does_not_come_back(file: File) -> None:
    with serve(engine__max_replicas=2) as server:
        file.num_good = 1
        told = roll(server, ready_s=5.0, wait_s=60.0)[1]
        assert (told["state"], told["reason"]) == ("aborted", "engine engine-1 was not ready within 5 s")
        assert complete(server).status == 200
        assert engine_rows(server.admin_port)["engine-2"]["state"] == "ready", "it is the only one that serves"
        assert "the engine that stood in stays" in server.take_log()


def test_a_server_of_one_engine_is_not_rolled_and_its_callers_see_nothing_of_it() -> None:
    with serve() as server:
        before = engine_rows(server.admin_port)
        status, told = roll(server)
        assert (status, told["error"]["code"]) == (422, "unsupported_parameter")
        assert "its restart cuts streams" in told["error"]["message"]
        assert "engine.max_replicas" in told["error"]["message"]
        assert complete(server).status == 200
        assert engine_rows(server.admin_port)["engine"]["process_id"] == before["engine"]["process_id"]
        assert request(server.admin_port, "GET", "/admin/v1/engines/roll").json()["state"] == "none"


@pytest.fixture
def two(request: pytest.FixtureRequest) -> Iterator[ServerThread]:
    with serve("scripted", engine__replicas=2, engine__restart_wait_s=3600.0) as running:
        yield running


def begin_on_first(server: ServerThread, pause_s: float) -> Caller:
    """A stream on engine-1, in the middle of it."""
    assert act(server.admin_port, "engine-2", "drain")[0] == 200
    caller = Caller(server.port, SLOW, pause_s=pause_s)
    caller.read_before()
    assert act(server.admin_port, "engine-2", "return")[0] == 200
    return caller


def end(caller: Caller) -> None:
    assert caller.read_rest().is_complete
    assert (caller.text(), caller.stream().errors) == (SLOW.text, [])
    caller.client.close()


def test_a_roll_ends_when_the_other_engine_dies_meanwhile_and_the_stream_goes_on(two: ServerThread) -> None:
    caller = begin_on_first(two, 1.5)
    before = engine_rows(two.admin_port)["engine-1"]["process_id"]
    assert roll(two)[1]["engine"] == "engine-1"
    signal_engine(two.admin_port, "engine-2", signal.SIGKILL)
    wait_until(lambda: request(two.admin_port, "GET", "/admin/v1/engines/roll").json()["state"] == "aborted", "the end")
    told = request(two.admin_port, "GET", "/admin/v1/engines/roll").json()
    assert told["reason"] == "no other engine of the model is left that requests could go to"
    assert complete_script(two).status == 200, "the one that was to be restarted takes requests again"
    end(caller)
    assert engine_rows(two.admin_port)["engine-1"]["process_id"] == before


def complete_script(server: ServerThread) -> Answer:
    body = {"model": server.model, "prompt": "a", "max_tokens": 3, "x_script": {"pieces": ["61"], "finish": "eos"}}
    return request(server.port, "POST", "/v1/completions", body)


def test_a_roll_that_is_stopped_leaves_the_engine_that_it_drained_serving(two: ServerThread) -> None:
    caller = begin_on_first(two, 1.0)
    assert roll(two)[1]["engine"] == "engine-1"
    wait_until(lambda: engine_rows(two.admin_port)["engine-1"]["state"] == "draining", "it is drained")
    told = request(two.admin_port, "POST", "/admin/v1/engines/roll/stop", {}).json()
    assert (told["state"], told["engine"], told["done"], told["left"]) == (
        "aborted",
        None,
        [],
        ["engine-1", "engine-2"],
    )
    assert told["reason"] == "an operator stopped it, or the server ends"
    end(caller)
    wait_until(
        lambda: complete_script(two).status == 200 and engine_rows(two.admin_port)["engine-1"]["state"] == "ready",
        "it serves",
    )


def test_no_engine_joins_a_model_that_has_as_many_as_one_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_members, "MAX_ENGINES", 2)
    with serve(engine__replicas=2) as server:
        status, told = add(server.admin_port)
        assert (status, told["error"]["code"]) == (422, "unsupported_parameter")
        assert told["error"]["message"] == "The model has 2 engines: no model has more."
        assert sorted(engine_rows(server.admin_port)) == ["engine-1", "engine-2"]
