"""`tidegate serve` with two engines as a program: one killed under load, with workers, and the end of everything."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.faults import Caller, Cell, Phase, Route, ask, hex_pieces
from harness.pool_view import act, engine_rows, signal_engine, wait_engine
from harness.raw_http import Answer, request
from harness.server_process import ServerProcess, is_alive
from harness.server_thread import wait_until
from harness.server_view import live_requests, read_metrics, read_ready

pytestmark = pytest.mark.process

NUM_CALLS = 24


def chat(port: int, text: str, pause_s: float = 0.0) -> Answer:
    script = {"pieces": hex_pieces(text), "finish": "eos", "prefill_delay_s": pause_s}
    return request(port, "POST", Route.CHAT.value, ask(Route.CHAT, script, max_tokens=10))


def texts(answers: list[Answer]) -> list[str]:
    return [answer.json()["choices"][0]["message"]["content"] for answer in answers]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_what_was_sent_nothing_is_answered_though_an_engine_is_killed(num_workers: int) -> None:  # LIFE-2
    with ServerProcess("scripted", engine__replicas=2, server__workers=num_workers) as program:
        process_ids = [row["process_id"] for row in engine_rows(program.admin_port).values()]
        expected = [f"t{number}" for number in range(NUM_CALLS)]
        with ThreadPoolExecutor(NUM_CALLS) as threads:
            calls = [threads.submit(chat, program.port, text, 1.5) for text in expected]
            wait_until(lambda: len(live_requests(program.admin_port)) == NUM_CALLS, "all are in")
            wait_until(lambda: sum(rows_of(program).values()) == NUM_CALLS, "the engines have them")
            assert min(rows_of(program).values()) > 0
            signal_engine(program.admin_port, "engine-1")
            assert texts([call.result() for call in calls]) == expected
        counted = read_metrics(program.admin_port)
        assert counted.total("pool_engine_moved_total") > 0
        assert counted.total("request_success_total") == NUM_CALLS
        row = wait_engine(program.admin_port, "engine-1", ready=True)
        assert row["process_id"] not in process_ids
        process_ids.append(row["process_id"])
        assert read_ready(program.admin_port).status == 200
        assert act(program.admin_port, "engine-2", "drain")[1]["state"] == "draining"
        assert texts([chat(program.port, f"d{number}") for number in range(6)]) == [f"d{number}" for number in range(6)]
        program.signal(signal.SIGTERM)
        wait_until(program.has_ended_under_signals, "the end")
        assert program.wait() == 0
    assert not any(is_alive(process_id) for process_id in process_ids)


def rows_of(program: ServerProcess) -> dict[str, int]:
    return {name: row["requests"] for name, row in engine_rows(program.admin_port).items()}


def test_a_drain_of_the_server_waits_for_requests_on_both_engines() -> None:  # LIFE-1
    with ServerProcess("scripted", engine__replicas=2) as program:
        cells = [Cell(Phase.PREFILL, Route.CHAT, is_stream=is_stream) for is_stream in (True, False)]
        callers = [Caller(program.port, cell, pause_s=1.5) for cell in cells]
        wait_until(lambda: rows_of(program) == {"engine-1": 1, "engine-2": 1}, "one on each")
        program.signal(signal.SIGTERM)
        assert callers[0].read_rest().is_complete
        assert callers[0].text() == cells[0].text
        assert callers[1].read_rest().json()["choices"][0]["message"]["content"] == cells[1].text
        for caller in callers:
            caller.client.close()
        assert program.wait() == 0
