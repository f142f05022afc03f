"""Servers that die with SIGKILL around the moment of the record: no answer is lost, none is given twice."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.faults import Route, ask, hex_pieces
from harness.raw_http import Answer, RawClient, request
from harness.server_process import PROGRAM, ServerProcess
from harness.server_thread import ServerThread, wait_until
from harness.server_view import read_metrics
from harness.worker_processes import pause, workers

pytestmark = pytest.mark.process

CHAT = Route.CHAT.value
SCRIPT = {"pieces": hex_pieces("on", "ce")}
KEY = {"Idempotency-Key": "k"}

DYING = """
import os
from tidegate.stores.ledger_file import LedgerFile
true_record, true_commit = LedgerFile.record, LedgerFile._commit
die_in_commit = []
def die(): os.kill(os.getpid(), 9)
def record(self, claim, answer):
    where = os.path.basename(os.environ["TIDEGATE_IDEMPOTENCY__FILE"])
    if where.startswith("before_record"): die()
    if where.startswith("before_commit"): die_in_commit.append(True)
    done = true_record(self, claim, answer)
    if where.startswith("after_record"): die()
    return done
def commit(self):
    if die_in_commit: die()
    true_commit(self)
LedgerFile.record, LedgerFile._commit = record, commit
"""
POINTS = {"before_record": False, "before_commit": False, "after_record": True}
"""Where the server dies, and whether the answer is in the ledger by then."""


def read_until_it_dies(port: int, body: Any) -> Answer | None:
    """Returns what a client has when the server dies; None before any status."""
    with RawClient(port) as client:
        client.post(CHAT, body, KEY)
        try:
            return client.read_answer()
        except ConnectionError:
            return None


@pytest.mark.parametrize(
    ("point", "is_stream"),
    [("before_record", True), ("before_commit", False), ("after_record", False), ("after_record", True)],
)
def test_no_answer_is_lost_or_given_twice(point: str, is_stream: bool, tmp_path: Path) -> None:  # IDEM-2 IDEM-10
    body = ask(Route.CHAT, SCRIPT, stream=is_stream)
    settings = {"idempotency__file": tmp_path / f"{point}.sqlite3"}
    with ServerProcess("scripted", DYING + PROGRAM, **settings) as server:
        cut = read_until_it_dies(server.port, body)
        assert server.wait() == -signal.SIGKILL
    assert cut is None or not (cut.is_complete or b"[DONE]" in cut.body)
    with ServerThread("scripted", idempotency__file=str(settings["idempotency__file"])) as restarted:
        answers = [request(restarted.port, "POST", CHAT, body, KEY) for _ in range(2)]
        metrics = read_metrics(restarted.admin_port)
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].body == answers[1].body
    assert ["idempotent-replayed" in answer.headers for answer in answers] == [POINTS[point], True]
    assert metrics.total("request_success_total") == (0 if POINTS[point] else 1)
    if is_stream:
        stream = read_stream(answers[0].body)
        assert (stream.content(), stream.num_done, stream.is_done_last) == ("once", 1, True)
        if cut is not None and cut.body and POINTS[point]:
            assert answers[0].body.startswith(b"".join(line + b"\n" for line in cut.body.split(b"\n")[:-1]))


def test_a_retry_on_the_other_worker_replays_and_a_dead_one_blocks_nobody(tmp_path: Path) -> None:  # IDEM-2 IDEM-4
    body, slow = ask(Route.CHAT, SCRIPT), ask(Route.CHAT, {**SCRIPT, "delays_s": [0, 60]}, stream=True)
    with ServerProcess("scripted", server__workers=2, server__state_dir=tmp_path) as server:
        one, other = workers(server)
        pause(other)
        first = request(server.port, "POST", CHAT, body, KEY)
        assert "idempotent-replayed" not in first.headers
        with RawClient(server.port) as client:
            client.post(CHAT, slow, {"Idempotency-Key": "slow"})
            assert client.read_head().status == 200
            other.resume()
            pause(one)
            again = request(server.port, "POST", CHAT, body, KEY)
            assert (again.body, again.headers["idempotent-replayed"]) == (first.body, "true")
            running = request(server.port, "POST", CHAT, slow, {"Idempotency-Key": "slow"})
            assert running.status == 409
            one.kill()  # no lease to wait for: the kernel frees what it held
            quick = ask(Route.CHAT, SCRIPT, stream=True)

            def runs() -> bool:
                return request(server.port, "POST", CHAT, quick, {"Idempotency-Key": "slow"}).status == 200

            wait_until(runs, "the key is free")
        wait_until(lambda: read_metrics(server.admin_port).value("idempotency_entries") == 2, "one store, not two")


DAMAGES = {
    "noise": (b"this is no database" * 1000, "is damaged"),
    "cut": (b"SQLite format 3\0" + bytes(2000), "is damaged"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_with_what_to_do(damage: str, tmp_path: Path) -> None:
    content, words = DAMAGES[damage]
    path = tmp_path / "answers.sqlite3"
    path.write_bytes(content)
    environment = {**os.environ, "TIDEGATE_IDEMPOTENCY__FILE": str(path)}
    command = [sys.executable, "-c", PROGRAM, "serve", "--engine", "scripted", "--port", "0", "--admin-port", "0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert words in done.stderr
    assert "move it away" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_bytes() == content
