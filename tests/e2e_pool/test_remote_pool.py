"""Engines on other machines in one pool: failover, shared suspicion, one that joins by its address and retires.

The stand-ins compute what the simulated engine computes; they are no vLLM, and prove nothing about one.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.byte_folder import write_byte_folder
from harness.pool_view import act, add, engine_rows, wait_engine
from harness.raw_http import Answer, request
from harness.remote_stand_in import Fault
from harness.server_thread import ServerThread, wait_until
from harness.server_view import engine_state, read_metrics, read_ready
from harness.stand_in_thread import StandInThread
from harness.vllm_speech import VllmSpeech

FILE = """
[engine]
kind = "vllm-http"
health_interval_s = 0.05
restart_wait_s = 0.02
[model]
served_model_name = ["m"]
source = "test/model"
tokenizer = "{tokenizer}"
[pool]
eject_wait_s = 0.05
max_moves = 5
[[engines]]
name = "near"
url = "{near}"
[[engines]]
name = "far"
url = "{far}"
"""
SILENT = Fault(is_silent=True)


@dataclass
class Site:
    server: ServerThread
    engines: dict[str, StandInThread]
    threads: ThreadPoolExecutor

    def ask(self, text: str) -> Answer:
        body = {"model": "m", "prompt": text, "max_tokens": 3, "temperature": 0}
        return request(self.server.port, "POST", "/v1/completions", body)

    def hang(self, text: str) -> tuple[str, Future[Answer]]:
        """Sends a request that its engine never answers; returns which one has it."""
        for engine in self.engines.values():
            engine.stand_in.faults[:] = [SILENT]
        answer = self.threads.submit(self.ask, text)
        return self.holder(), answer

    def holder(self, other_than: str = "") -> str:
        found: list[str] = []

        def is_there() -> bool:
            rows = engine_rows(self.server.admin_port)
            found[:] = [name for name, row in rows.items() if row["requests"] and name != other_than]
            return len(found) == 1

        wait_until(is_there, "one engine has the request")
        return found[0]

    def kill(self, name: str) -> None:
        self.engines[name].call(self.engines[name].stand_in.die)

    def revive(self) -> None:
        for name, engine in self.engines.items():
            engine.stand_in.faults.clear()
            if not engine_rows(self.server.admin_port)[name]["ready"]:
                engine.call(engine.stand_in.start)
            wait_engine(self.server.admin_port, name, ready=True)


def text_of(answer: Answer) -> str:
    assert answer.status == 200
    return str(answer.json()["choices"][0]["text"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = write_byte_folder(tmp_path_factory.mktemp("tokenizer"))
    with ExitStack() as stack:
        engines = {name: stack.enter_context(StandInThread(VllmSpeech())) for name in ("near", "far")}
        urls = {name: engine.url for name, engine in engines.items()}
        server = stack.enter_context(ServerThread("vllm-http", file=FILE.format(tokenizer=folder, **urls)))
        yield Site(server, engines, stack.enter_context(ThreadPoolExecutor(4)))


def test_a_request_without_output_is_answered_by_the_other_engine(site: Site) -> None:  # LIFE-2
    expected = text_of(site.ask("abc"))
    before = read_metrics(site.server.admin_port)
    lost, answer = site.hang("abc")
    other = next(name for name in site.engines if name != lost)
    site.engines[other].stand_in.faults.clear()
    site.kill(lost)
    assert text_of(answer.result()) == expected
    wait_engine(site.server.admin_port, lost, ready=False)
    ready = read_ready(site.server.admin_port)
    assert (ready.status, [one["engine"] for one in ready.json()["degraded"]]) == (200, [lost])
    assert text_of(site.ask("abc")) == expected
    after = read_metrics(site.server.admin_port)
    assert after.since(before, "pool_engine_moved_total", engine=lost) == 1
    site.revive()


def test_what_two_engines_died_with_is_tried_on_no_third(site: Site) -> None:  # LIFE-2
    with StandInThread(VllmSpeech()) as third:
        status, told = add(site.server.admin_port, {"url": third.url, "wait_s": 30})
        assert (status, told["engine"], told["state"]) == (200, "near-1", "ready")
        third.stand_in.faults[:] = []
        assert act(site.server.admin_port, "near-1", "drain")[0] == 200
        first, answer = site.hang("poison")
        site.kill(first)
        second = site.holder(other_than=first)
        assert act(site.server.admin_port, "near-1", "return")[0] == 200
        site.kill(second)
        assert (answer.result().status, answer.result().json()["error"]["code"]) == (502, "engine_lost")
        for name in (first, second):
            wait_engine(site.server.admin_port, name, ready=False)
        assert engine_state(site.server.admin_port)["poison_suspects"] >= 1
        refused = site.ask("poison")
        assert (refused.status, refused.json()["error"]["code"]) == (502, "engine_refused")
        assert text_of(site.ask("abc")), "the third serves"
        assert len(third.stand_in.names) == 1
        site.revive()
        assert act(site.server.admin_port, "near-1", "retire", {"wait_s": 30})[1]["state"] == "gone"
    assert sorted(engine_rows(site.server.admin_port)) == ["far", "near"]


def test_an_address_is_needed_and_a_roll_is_not_for_engines_elsewhere(site: Site) -> None:
    assert add(site.server.admin_port, {})[1]["error"]["message"].startswith("The vllm-http engine runs elsewhere")
    assert add(site.server.admin_port, {"url": "nonsense"})[0] == 422
    status, told = add(site.server.admin_port, {"model": "nobody"})
    assert (status, told["error"]["code"]) == (404, "route_not_found")
    rolled = request(site.server.admin_port, "POST", "/admin/v1/engines/roll", {})
    assert (rolled.status, rolled.json()["error"]["code"]) == (422, "unsupported_parameter")
    assert sorted(engine_rows(site.server.admin_port)) == ["far", "near"]
