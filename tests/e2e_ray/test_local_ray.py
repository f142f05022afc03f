"""A Ray of the server's own, on this machine: it lives as long as the server does, and not longer."""

import psutil
import pytest

from harness.faults import Route, ask, hex_pieces
from harness.raw_http import Answer, request
from harness.server_process import ServerProcess
from harness.server_thread import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

PATIENCE_S = 60.0


def chat(server: ServerProcess, text: str) -> Answer:
    return request(server.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces(text)}))


def test_it_answers_and_leaves_nothing_behind() -> None:
    with ServerProcess("ray", engine__ray_engine="scripted", engine__ray_num_cpus=0.1) as server:
        started = psutil.Process(server.process_id).children(recursive=True)
        assert {"gcs_server", "raylet"} <= {each.name() for each in started}
        for text in ("first", "second"):
            answer = chat(server, text)
            assert (answer.status, answer.json()["choices"][0]["message"]["content"]) == (200, text)
        server.signal()
        assert server.wait() == 0
        assert not [line for line in server.lines if "SIGTERM received" in line], "Ray has no say in our signals"
        wait_until(lambda: not psutil.wait_procs(started, timeout=0)[1], "all of Ray has ended", PATIENCE_S)
