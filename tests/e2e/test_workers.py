"""Several server processes behind one port share one engine, and the first process speaks for all of them."""

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from harness.event_stream import read_stream
from harness.raw_http import RawClient, request
from harness.server_process import ServerProcess
from harness.server_thread import wait_until

pytestmark = pytest.mark.process

CHAT = "/v1/chat/completions"
NUM_REQUESTS = 24


def body(text: str, **script: object) -> dict[str, object]:
    pieces = [character.encode().hex() for character in text]
    return {
        "model": "scripted",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "x_script": {"pieces": pieces, **script},
    }


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess("scripted", server__workers=2) as running:
        yield running


def worker_ids(server: ServerProcess) -> list[int]:
    children = psutil.Process(server.process_id).children()
    return [child.pid for child in children if is_worker(child)]


def is_worker(process: psutil.Process) -> bool:
    """False for one that has ended, reaped or not."""
    try:
        return "tidegate.cli.worker" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def metric(server: ServerProcess, name: str) -> float:
    text = request(server.admin_port, "GET", "/metrics").body.decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def test_requests_are_spread_and_each_gets_its_own_answer(server: ServerProcess) -> None:
    before = metric(server, "tidegate_request_success_total")
    texts = [f"answer number {i}" for i in range(NUM_REQUESTS)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda text: request(server.port, "POST", CHAT, body(text)), texts))
    assert [read_stream(answer.body).content() for answer in answers] == texts
    wait_until(
        lambda: metric(server, "tidegate_request_success_total") == before + NUM_REQUESTS, "the counts of all workers"
    )
    engine = request(server.admin_port, "GET", "/admin/v1/engine").json()
    assert engine["admission"]["num_acquired"] >= NUM_REQUESTS
    assert engine["admission"]["num_requests"] == 0
    assert engine["gauges"]["blocks_used"] == 0


def test_live_requests_of_every_worker_are_listed(server: ServerProcess) -> None:
    clients = [RawClient(server.port) for _ in range(8)]
    for client in clients:
        client.post(CHAT, body("ab", delays_s=[0, 60]))
        assert client.read_head().status == 200
    listed = request(server.admin_port, "GET", "/admin/v1/requests").json()["data"]
    assert len(listed) == 8
    for client in clients:
        client.close()
    wait_until(
        lambda: request(server.admin_port, "GET", "/admin/v1/requests").json()["data"] == [], "all of them ended"
    )


def test_a_worker_that_dies_is_replaced_and_its_requests_are_aborted_in_the_engine(server: ServerProcess) -> None:
    with RawClient(server.port) as client:
        client.post(CHAT, body("ab", delays_s=[0, 60]))
        assert client.read_head().status == 200
        before = worker_ids(server)
        for process_id in before:
            os.kill(process_id, signal.SIGKILL)
        with pytest.raises(ConnectionError):  # cut off, so that no reader takes it for a whole answer
            while client.read_chunk() is not None:
                pass
    wait_until(lambda: len(set(worker_ids(server)) - set(before)) == 2, "two new workers")
    wait_until(lambda: request(server.admin_port, "GET", "/readyz").status == 200, "ready again")
    wait_until(
        lambda: request(server.admin_port, "GET", "/admin/v1/engine").json()["gauges"]["blocks_used"] == 0,
        "the blocks of the lost requests",
    )
    assert read_stream(request(server.port, "POST", CHAT, body("again")).body).content() == "again"


def test_sigterm_lets_every_worker_finish_and_leaves_no_process() -> None:
    with ServerProcess("scripted", server__workers=2) as running:
        clients = [RawClient(running.port) for _ in range(6)]
        for client in clients:
            client.post(CHAT, body("slow", delays_s=[0.2]))
        heads = [client.read_head() for client in clients]
        children = psutil.Process(running.process_id).children(recursive=True)
        running.signal()
        for client, head in zip(clients, heads, strict=True):
            assert head.status == 200
            data = b""
            while (chunk := client.read_chunk()) is not None:
                data += chunk
            stream = read_stream(data)
            assert (stream.content(), stream.finish_reasons()) == ("slow", ["stop"])
            client.close()
        assert running.wait() == 0
        assert psutil.wait_procs(children, timeout=10)[1] == []


def test_the_merged_exposition_is_valid_and_has_each_series_once(server: ServerProcess) -> None:
    text = request(server.admin_port, "GET", "/metrics").body.decode()
    series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if line and not line.startswith("#")]
    assert len(series) == len(set(series))
    assert json.loads(request(server.admin_port, "GET", "/readyz").body) == {"status": "ready"}
