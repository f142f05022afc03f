"""The number of engines of a running server follows the load, up and down again, and nothing is cut."""

import pytest

from harness.faults import Caller, Cell, Phase, Route
from harness.pool_view import engine_rows
from harness.server_thread import ServerThread, wait_until
from harness.server_view import read_metrics, read_ready

pytestmark = pytest.mark.process


def states(server: ServerThread) -> dict[str, str]:
    return {name: row["state"] for name, row in engine_rows(server.admin_port).items()}


def test_an_engine_comes_with_the_queue_and_goes_with_it() -> None:
    with ServerThread(
        "scripted",
        engine__max_replicas=2,
        engine__max_sequences=1,
        pool__scale_up_tokens=1,
        pool__scale_down_tokens=1,
        pool__scale_up_wait_s=0.0,
        pool__scale_down_wait_s=0.2,
    ) as server:
        cells = [Cell(Phase.PREFILL, Route.CHAT, is_stream=bool(number % 2)) for number in range(4)]
        callers = [Caller(server.port, cell, pause_s=0.8) for cell in cells]
        wait_until(lambda: len(states(server)) == 2, "a second engine is started")
        wait_until(lambda: set(states(server).values()) == {"ready"}, "it serves")
        for caller in callers:
            assert caller.read_rest().status == 200
            caller.client.close()
        wait_until(lambda: len(states(server)) == 1, "one retires")
        assert read_ready(server.admin_port).status == 200
        counted = read_metrics(server.admin_port)
        assert counted.total("requests_failed_total") == 0
        assert counted.total("request_success_total") == 4
