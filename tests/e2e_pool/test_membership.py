"""Engines that join a running server and retire from it, by an operator's word: nothing of any stream is cut."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from click.testing import CliRunner

from harness.faults import Caller, Cell, Phase, Route, ask, hex_pieces
from harness.pool_view import act, add, engine_rows
from harness.raw_http import Answer, request
from harness.server_process import ServerProcess, is_alive
from harness.server_thread import wait_until
from harness.server_view import read_metrics, read_ready
from tidegate.cli.main import cli

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


def texts(answers: Iterable[Answer]) -> list[str]:
    return [answer.json()["choices"][0]["message"]["content"] for answer in answers]


def finish(callers: list[Caller]) -> None:
    """Reads every stream to its end, which is its own, and the only one."""
    for caller in callers:
        assert caller.read_rest().is_complete
        stream = caller.stream()
        assert (caller.text(), stream.num_done, stream.errors) == (caller.cell.text, 1, [])
        caller.client.close()


def run_cli(program: ServerProcess, *words: str) -> tuple[int, str]:
    url = f"http://127.0.0.1:{program.admin_port}"
    found = CliRunner().invoke(cli, ["engines", *words, "--admin-url", url])
    return found.exit_code, found.output


def roll(program: ServerProcess, body: dict[str, float]) -> tuple[int, dict[str, Any]]:
    answer = request(program.admin_port, "POST", "/admin/v1/engines/roll", body)
    return answer.status, answer.json()


def rolled(program: ServerProcess) -> dict[str, Any]:
    answer: dict[str, Any] = request(program.admin_port, "GET", "/admin/v1/engines/roll").json()
    return answer


def all_serve(program: ServerProcess) -> bool:
    """Whether every server process can use every engine, and none is on trial. Sends a request."""
    assert chat(program).status == 200
    return all(row["ready"] and row["state"] == "ready" for row in engine_rows(program.admin_port).values())


def process_ids(program: ServerProcess) -> set[int]:
    return {row["process_id"] for row in engine_rows(program.admin_port).values()}


def test_an_engine_that_was_added_serves_and_one_that_retires_finishes_first(program: ServerProcess) -> None:
    assert list(engine_rows(program.admin_port)) == described(program) == ["engine-1"]
    status, told = add(program.admin_port, {"wait_s": 60})
    assert (status, told["engine"], told["state"]) == (200, "engine-2", "ready")
    assert described(program) == ["engine-1", "engine-2"]
    rows = engine_rows(program.admin_port)
    cells = [Cell(phase, Route.CHAT, is_stream=True) for phase in (Phase.PREFILL, Phase.DECODE) for _ in range(4)]
    callers = [Caller(program.port, cell, pause_s=PAUSE_S) for cell in cells]
    wait_until(lambda: sum(busy(program).values()) == len(cells), "the engines have them")
    assert min(busy(program).values()) > 0
    status, told = act(program.admin_port, "engine-1", "retire")
    assert (status, told["state"], told["requests"] > 0) == (202, "retiring", True)
    held = told["requests"]
    assert texts(chat(program, f"d{i}") for i in range(4)) == [f"d{i}" for i in range(4)]
    assert busy(program).get("engine-1", 0) <= held, "nothing comes"
    finish(callers)
    wait_until(lambda: list(engine_rows(program.admin_port)) == ["engine-2"], "it has left")
    wait_until(lambda: described(program) == ["engine-2"], "nobody is told of it any more")
    wait_until(lambda: not is_alive(rows["engine-1"]["process_id"]), "its process has ended")
    assert read_metrics(program.admin_port).value("pool_engine_up", engine="engine-2", model=model(program)) == 1
    assert read_ready(program.admin_port).status == 200


def test_all_engines_are_restarted_one_after_the_other_and_no_stream_is_cut(program: ServerProcess) -> None:
    """The first half of the streams runs when the roll begins, the second comes while it is under way."""
    assert run_cli(program, "add", "--wait", "60") == (0, "engine-1: ready\n")
    before, counted = process_ids(program), read_metrics(program.admin_port)
    cells = [Cell(phase, Route.CHAT, is_stream=True) for phase in (Phase.PREFILL, Phase.DECODE) for _ in range(3)]
    callers = [Caller(program.port, cell, pause_s=PAUSE_S) for cell in cells]
    wait_until(lambda: sum(busy(program).values()) == len(cells), "the engines have them")
    status, told = roll(program, {})
    assert (status, told["state"], told["done"], len(told["left"])) == (202, "draining", [], 2)
    assert roll(program, {})[0] == 503, "one at a time"
    with ThreadPoolExecutor(4) as threads:
        later = [threads.submit(chat, program, f"l{i}", 0.2) for i in range(8)]
        finish(callers)
        assert texts(one.result() for one in later) == [f"l{i}" for i in range(8)]
    wait_until(lambda: rolled(program)["state"] not in ("draining", "starting"), "the end of the roll")
    assert rolled(program) == {
        "state": "done",
        "engine": None,
        "done": ["engine-2", "engine-1"],
        "left": [],
        "reason": None,
    }
    assert not before & process_ids(program)
    assert read_metrics(program.admin_port).since(counted, "requests_failed_total") == 0
    assert run_cli(program, "roll", "--show") == (0, "done, 2 done, 0 left\n")


def test_a_roll_ends_when_a_new_engine_is_not_ready_and_the_others_go_on(program: ServerProcess) -> None:
    before = engine_rows(program.admin_port)
    code, words = run_cli(program, "roll", "--ready", "0.001", "--wait", "30")
    assert (code, words) == (1, "aborted, 0 done, 2 left: engine engine-2 was not ready within 0.001 s\n")
    assert engine_rows(program.admin_port)["engine-1"]["process_id"] == before["engine-1"]["process_id"]
    assert chat(program).status == 200

    def is_new() -> bool:
        row = engine_rows(program.admin_port)["engine-2"]
        return bool(row["ready"]) and row["process_id"] != before["engine-2"]["process_id"]

    wait_until(is_new, "it comes all the same")
    wait_until(lambda: all_serve(program), "both serve")


def test_readiness_names_who_is_out_and_the_command_line_shows_and_mends_it(program: ServerProcess) -> None:
    assert run_cli(program, "drain", "engine-1") == (0, "engine-1: draining, 0 requests left\n")
    assert read_ready(program.admin_port).json() == {
        "status": "ready",
        "degraded": [
            {
                "engine": "engine-1",
                "model": model(program),
                "condition": "taken out by an operator, 0 requests left",
            }
        ],
    }
    code, listed = run_cli(program, "list")
    assert code == 0
    assert "draining" in next(line for line in listed.splitlines() if line.startswith("engine-1"))
    for act_name in ("drain", "eject", "retire"):
        code, words = run_cli(program, act_name, "engine-2")
        assert (code, "No other engine of this model is ready" in words) == (1, True)
    assert run_cli(program, "return", "engine-1")[0] == 0
    wait_until(lambda: all_serve(program), "both serve")
    assert read_ready(program.admin_port).json() == {"status": "ready"}
    code, words = run_cli(program, "restart", "nobody")
    assert (code, words.startswith("tidegate: No engine has this name. (status 404)")) == (1, True)
