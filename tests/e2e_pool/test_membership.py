"""Engines that join a running server and retire from it, by an operator's word: nothing of any stream is cut."""

from collections.abc import Iterator

import pytest

from harness.faults import Caller, Cell, Phase, Route, ask, hex_pieces
from harness.pool_view import act, add, engine_rows
from harness.raw_http import Answer, request
from harness.server_process import ServerProcess, is_alive
from harness.server_thread import wait_until
from harness.server_view import read_metrics, read_ready

pytestmark = pytest.mark.process

PAUSE_S = 1.0


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two processes"])
def program(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    with ServerProcess(
        "scripted",
        engine__max_replicas=4,
        pool__scale_up_tokens=1_000_000,
        pool__scale_down_wait_s=3600.0,
        server__workers=request.param,
        engine__restart_wait_s=0.01,
    ) as running:
        yield running


def chat(program: ServerProcess, text: str = "x", pause_s: float = 0.0) -> Answer:
    script = {"pieces": hex_pieces(text), "finish": "eos", "prefill_delay_s": pause_s}
    return request(program.port, "POST", Route.CHAT.value, ask(Route.CHAT, script, max_tokens=10))


def busy(program: ServerProcess) -> dict[str, int]:
    return {name: row["requests"] for name, row in engine_rows(program.admin_port).items()}


def model(program: ServerProcess) -> str:
    return str(request(program.port, "GET", "/v1/models").json()["data"][0]["id"])


def described(program: ServerProcess) -> list[str]:
    return [one["name"] for one in request(program.port, "GET", "/v1/contract").json()["models"][0]["engines"]]


def test_an_engine_that_was_added_serves_and_one_that_retires_finishes_first(program: ServerProcess) -> None:
    assert list(engine_rows(program.admin_port)) == described(program) == ["engine-1"]
    status, told = add(program.admin_port, {"wait_s": 60})
    assert (status, told["engine"], told["state"]) == (200, "engine-2", "ready")
    assert described(program) == ["engine-1", "engine-2"]
    rows = engine_rows(program.admin_port)
    cells = [Cell(phase, Route.CHAT, is_stream=True) for phase in (Phase.PREFILL, Phase.DECODE) for _ in range(4)]
    callers = [Caller(program.port, cell, pause_s=PAUSE_S) for cell in cells]
    wait_until(lambda: busy(program) == {"engine-1": 4, "engine-2": 4}, "each has its half")
    status, told = act(program.admin_port, "engine-1", "retire")
    assert (status, told["state"]) == (202, "retiring")
    assert [chat(program, f"d{i}").json()["choices"][0]["message"]["content"] for i in range(4)] == [
        f"d{i}" for i in range(4)
    ]
    assert busy(program) == {"engine-1": 4, "engine-2": 4}, "what it had goes on"
    for caller in callers:
        assert caller.read_rest().is_complete
        assert (caller.text(), caller.stream().num_done, caller.stream().errors) == (caller.cell.text, 1, [])
        caller.client.close()
    status, told = (
        act(program.admin_port, "engine-1", "retire", {"wait_s": 30})
        if "engine-1" in engine_rows(program.admin_port)
        else (200, {"state": "gone"})
    )
    assert (status, told["state"]) == (200, "gone")
    assert list(engine_rows(program.admin_port)) == ["engine-2"]
    wait_until(lambda: described(program) == ["engine-2"], "nobody is told of it any more")
    wait_until(lambda: not is_alive(rows["engine-1"]["process_id"]), "its process has ended")
    assert read_metrics(program.admin_port).value("pool_engine_up", engine="engine-2", model=model(program)) == 1
    assert read_ready(program.admin_port).status == 200
