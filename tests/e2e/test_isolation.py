"""Thousands of requests at once, each with a marker of its own: nobody sees another's, and health answers meanwhile."""

import json
import random
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.faults import LONG_S, Route, ask, hex_pieces
from harness.raw_http import Answer, RawClient, request
from harness.server_thread import ServerThread, wait_until
from harness.server_view import engine_state, live_requests, read_metrics

pytestmark = pytest.mark.process

NUM_REQUESTS = 2000
NUM_THREADS = 16
NUM_ROUNDS = 10


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted", engine__max_sequences=64, admission__queue_depth=4096) as running:
        yield running


class Marked:
    """One request whose text, errors and id all hold a marker that no other has."""

    def __init__(self, number: int, kind: int) -> None:
        self.marker = f"<{number:06d}>"
        self.kind = kind
        self.route = Route.CHAT if kind % 2 else Route.COMPLETIONS
        self.is_stream = kind % 3 == 0
        self.is_refused = kind % 7 == 0
        self.name = f"caller-{number:06d}"

    def send(self, client: RawClient) -> None:
        pieces = hex_pieces(*self.marker)
        script = {"pieces": pieces, "finish": "eos", "delays_s": [0.0, 0.001]}
        fields: dict[str, Any] = {"model": self.marker} if self.is_refused else {}
        stop = [f"{self.marker}!"]
        body = ask(self.route, script, stream=self.is_stream, stop=stop, user=self.marker, **fields)
        client.post(self.route.value, body, {"X-Request-Id": self.name})

    def check(self, answer: Answer) -> None:
        assert answer.headers["x-request-id"] == self.name
        if self.is_refused:
            assert answer.status == 404
            assert self.marker in answer.json()["error"]["message"]
        else:
            assert (answer.status, answer.is_complete) == (200, True)
            assert self.text(answer) == self.marker
        assert set(re.findall(rb"<\d{6}>", answer.body)) <= {self.marker.encode()}

    def text(self, answer: Answer) -> str:
        if self.is_stream:
            stream = read_stream(answer.body)
            assert stream.is_done_last
            assert len({chunk["id"] for chunk in stream.chunks}) == 1
            return stream.content() if self.route is Route.CHAT else stream.text()
        choice = answer.json()["choices"][0]
        return str(choice["message"]["content"] if self.route is Route.CHAT else choice["text"])


def test_each_of_thousands_of_requests_gets_its_own_answer(server: ServerThread) -> None:  # ISO-1
    order = random.Random(1)
    requests = [Marked(number, order.randrange(42)) for number in range(NUM_REQUESTS)]
    before = server.rest()
    failures: list[BaseException] = []

    def run(part: list[Marked]) -> None:
        try:
            for start in range(0, len(part), len(part) // NUM_ROUNDS):
                burst = part[start : start + len(part) // NUM_ROUNDS]
                clients = [RawClient(server.port) for _ in burst]
                for client, one in zip(clients, burst, strict=True):
                    one.send(client)
                for client, one in zip(clients, burst, strict=True):
                    with client:
                        one.check(client.read_answer())
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(requests[i::NUM_THREADS],)) for i in range(NUM_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    server.wait_back(before)


def test_health_ready_and_metrics_answer_while_everything_is_full() -> None:  # OVL-6
    """By order, not by time: the requests that fill the server are all still there when the answers have come."""
    with ServerThread("scripted", engine__max_sequences=2, admission__queue_depth=3) as full:
        body = json.dumps(ask(Route.CHAT, {"pieces": hex_pieces("x"), "delays_s": [LONG_S]})).encode()
        clients = [RawClient(full.port) for _ in range(5)]
        for client in clients:
            client.send("POST", Route.CHAT.value, body)
        wait_until(lambda: len(live_requests(full.admin_port)) == 5, "slots and queue are full")
        refused = request(full.port, "POST", Route.CHAT.value, body)
        assert (refused.status, refused.json()["error"]["code"]) == (429, "queue_full")
        for _ in range(10):
            assert request(full.port, "GET", "/health").status == 200
            assert request(full.port, "GET", "/healthz").status == 200
            assert request(full.admin_port, "GET", "/healthz").status == 200
            assert request(full.admin_port, "GET", "/readyz").status == 200
            assert read_metrics(full.admin_port).value("requests_refused_total", code="queue_full") >= 0
        assert engine_state(full.admin_port)["ready"]
        assert len(live_requests(full.admin_port)) == 5
        for client in clients:
            client.close()
