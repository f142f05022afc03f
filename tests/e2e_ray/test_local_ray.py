"""A Ray of the server's own, on this machine: it lives as long as the server does, and not longer."""

import psutil
import pytest

from harness.faults import Route, ask, hex_pieces
from harness.raw_http import Answer, RawClient, request
from harness.server_process import ServerProcess
from harness.server_thread import wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

PATIENCE_S = 60.0


def chat(server: ServerProcess, text: str) -> Answer:
    return request(server.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces(text)}))


SLOW = {"pieces": ["61"], "repeat": 50, "delays_s": [0.1]}
"""Five seconds: Ray's own handler of SIGTERM aborts after three."""


def test_it_answers_finishes_what_runs_at_its_end_and_leaves_nothing_behind() -> None:
    with ServerProcess("ray", engine__ray_engine="scripted", engine__ray_num_cpus=0.1) as server:
        started = psutil.Process(server.process_id).children(recursive=True)
        assert {"gcs_server", "raylet"} <= {each.name() for each in started}
        for text in ("first", "second"):
            answer = chat(server, text)
            assert (answer.status, answer.json()["choices"][0]["message"]["content"]) == (200, text)
        with RawClient(server.port) as client:
            client.post(Route.CHAT.value, ask(Route.CHAT, SLOW, stream=True))
            client.read_head()
            server.signal()
            chunks = b"".join(iter(client.read_chunk, None))
        assert chunks.count(b'"content":"a"') == 50
        assert chunks.endswith(b"data: [DONE]\n\n")
        assert server.wait() == 0
        assert not [line for line in server.lines if "SIGTERM" in line]
        wait_until(lambda: not psutil.wait_procs(started, timeout=0)[1], "all of Ray has ended", PATIENCE_S)
