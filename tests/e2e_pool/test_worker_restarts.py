"""A server process that dies while an engine retires: the others' requests keep that engine, its own do not."""

import pytest

from harness.faults import Caller, Cell, Phase, Route, ask, hex_pieces
from harness.pool_view import act, engine_rows
from harness.raw_http import request
from harness.server_process import ServerProcess
from harness.server_thread import wait_until
from harness.server_view import read_ready
from harness.worker_processes import pause, workers

pytestmark = pytest.mark.process

STREAM = Cell(Phase.DECODE, Route.CHAT, is_stream=True)


def chat(program: ServerProcess) -> str:
    answer = request(program.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("x")}))
    return str(answer.json()["choices"][0]["message"]["content"])


@pytest.mark.parametrize("dies", ["another", "the one that has the stream"])
def test_an_engine_retires_when_no_process_that_lives_has_a_stream_there(dies: str) -> None:
    with ServerProcess("scripted", engine__replicas=2, server__workers=2) as program:
        one, other = workers(program)
        assert act(program.admin_port, "engine-2", "drain")[0] == 200
        pause(other)
        caller = Caller(program.port, STREAM, pause_s=60.0)
        caller.read_before()
        other.resume()
        assert act(program.admin_port, "engine-2", "return")[0] == 200
        status, told = act(program.admin_port, "engine-1", "retire")
        assert (status, told["state"], told["requests"]) == (202, "retiring", 1)
        (other if dies == "another" else one).kill()
        if dies == "another":
            assert len(workers(program)) == 2
            assert [chat(program) for _ in range(6)] == ["x"] * 6
            row = engine_rows(program.admin_port)["engine-1"]
            assert (row["state"], row["requests"], row["submitted"]) == ("retiring", 1, 1), (
                "the new one gives it nothing"
            )
        else:
            assert not caller.read_rest().is_complete
        caller.client.close()
        wait_until(lambda: list(engine_rows(program.admin_port)) == ["engine-2"], "it has left")
        assert len(workers(program)) == 2
        assert [chat(program) for _ in range(6)] == ["x"] * 6
        assert read_ready(program.admin_port).status == 200
