"""More than fits: everybody gets an answer at once, which says what to do, and afterwards nothing is left of it."""

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

NUM_PARALLEL = 200
SHORT_STREAM = {"pieces": hex_pieces("a"), "repeat": 20, "delays_s": [0.01], "finish": "eos"}
NUM_BIG_WORDS = 2_000_000
QUEUED_TOKENS = 100


@pytest.fixture(scope="module")
def narrow() -> Iterator[ServerThread]:
    """Runs one sequence, and lets one wait."""
    with ServerThread("scripted", engine__max_sequences=1, admission__queue_depth=1) as running:
        yield running


@pytest.fixture(scope="module")
def strict() -> Iterator[ServerThread]:
    """Lets few prompt tokens wait, and refuses with 503."""
    settings = {"admission__queued_tokens": QUEUED_TOKENS, "admission__queue_full_status": 503}
    with ServerThread("scripted", **settings) as running:
        yield running


def check_refusal(answer: Answer, status: int, name: str, value: int) -> dict[str, Any]:
    """A full queue: an object that says which limit fired, and when to come back."""
    assert (answer.status, answer.is_complete) == (status, True)
    assert answer.headers["content-type"] == "application/json"
    assert (answer.headers["retry-after"], answer.headers["x-should-retry"]) == ("1", "true")
    error: dict[str, Any] = answer.json()["error"]
    assert (error["code"], error["type"], error["param"]) == ("queue_full", "rate_limit_error", None)
    limit: dict[str, Any] = error["limit"]
    assert (limit["name"], limit["value"], limit["scope"]) == (name, value, "server")
    assert limit["actual"] > value
    assert set(limit) == {"name", "value", "actual", "scope"}
    return limit


def test_of_two_hundred_at_once_each_is_served_or_told_to_come_back(narrow: ServerThread) -> None:  # C162-1
    request(narrow.port, "POST", Route.CHAT.value, ask(Route.CHAT, SHORT_STREAM))
    before, counted = narrow.rest(), read_metrics(narrow.admin_port)
    clients = [RawClient(narrow.port) for _ in range(NUM_PARALLEL)]
    for client in clients:
        client.post(Route.CHAT.value, ask(Route.CHAT, SHORT_STREAM, stream=True))
    num_served = 0
    for client in clients:
        with client:
            answer = client.read_answer()
        if answer.status == 200:
            num_served += 1
            stream = read_stream(answer.body)
            assert (stream.content(), stream.finish_reasons(), stream.is_done_last) == ("a" * 20, ["stop"], True)
        else:
            assert check_refusal(answer, 429, "queue_depth", 1)["actual"] == 2
    assert 2 <= num_served < NUM_PARALLEL
    narrow.wait_back(before)
    now = read_metrics(narrow.admin_port)
    assert now.since(counted, "requests_received_total") == NUM_PARALLEL
    assert now.since(counted, "request_success_total", finish_reason="stop") == num_served
    num_refused = NUM_PARALLEL - num_served
    assert now.since(counted, "requests_refused_total", code="queue_full") == num_refused
    assert now.since(counted, "request_errors_total", code="queue_full") == num_refused
    assert now.since(counted, "http_requests_total", status="429") == num_refused


def test_after_an_overload_the_next_request_is_served(narrow: ServerThread) -> None:  # OVL-6 OVL-9
    before = narrow.rest()
    held = [RawClient(narrow.port) for _ in range(2)]
    for client in held:
        client.post(Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("x"), "delays_s": [LONG_S]}))
    wait_until(lambda: len(live_requests(narrow.admin_port)) == 2, "the queue is full")
    for is_stream in (True, False):
        for route in Route:
            refused = request(narrow.port, "POST", route.value, ask(route, stream=is_stream))
            check_refusal(refused, 429, "queue_depth", 1)
    assert request(narrow.port, "GET", "/health").status == 200, "a full queue is not a broken host"
    for path in ("/readyz", "/metrics", "/admin/v1/requests"):
        assert request(narrow.admin_port, "GET", path).status == 200
    for client in held:
        client.close()
    narrow.wait_back(before)
    served = request(narrow.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("again")}))
    assert served.json()["choices"][0]["message"]["content"] == "again"


def test_choices_and_prompts_count_one_by_one(narrow: ServerThread) -> None:
    """Two sequences fit. Alone, a request may ask for more than that: advice to retry would be a lie."""
    script = {"pieces": hex_pieces("x")}
    alone = request(narrow.port, "POST", Route.CHAT.value, ask(Route.CHAT, script, n=5))
    assert len(alone.json()["choices"]) == 5
    with RawClient(narrow.port) as holder:
        holder.post(Route.CHAT.value, ask(Route.CHAT, {**script, "delays_s": [LONG_S]}))
        wait_until(lambda: len(live_requests(narrow.admin_port)) == 1, "one sequence runs")
        for route, fields in ((Route.CHAT, {"n": 2}), (Route.COMPLETIONS, {"prompt": ["a", "b"]})):
            refused = request(narrow.port, "POST", route.value, ask(route, script, **fields))
            assert check_refusal(refused, 429, "queue_depth", 1)["actual"] == 2
    wait_until(lambda: not live_requests(narrow.admin_port), "nothing is live")


def test_prompt_tokens_that_wait_are_bounded(strict: ServerThread) -> None:
    request(strict.port, "POST", Route.COMPLETIONS.value, ask(Route.COMPLETIONS))
    before = strict.rest()
    waiting = {"pieces": hex_pieces("x", "y"), "queue_delay_s": LONG_S}
    running = {"pieces": hex_pieces("x", "y"), "delays_s": [0.0, LONG_S]}
    with RawClient(strict.port) as started, RawClient(strict.port) as queued:
        started.post(Route.COMPLETIONS.value, ask(Route.COMPLETIONS, running, prompt="p" * 60))
        wait_until(
            lambda: bool(strict.baseline().num_permits) and not strict.baseline().queued_tokens,
            "a prompt with output no longer waits",
        )
        queued.post(Route.COMPLETIONS.value, ask(Route.COMPLETIONS, waiting, prompt="p" * 60))
        wait_until(lambda: strict.baseline().queued_tokens == 60, "a prompt waits")
        refused = request(strict.port, "POST", Route.CHAT.value, ask(Route.CHAT, stream=True, **MESSAGE))
        assert check_refusal(refused, 503, "queued_tokens", QUEUED_TOKENS)["actual"] == 120
        fits = request(strict.port, "POST", Route.COMPLETIONS.value, ask(Route.COMPLETIONS, prompt="p" * 40))
        assert fits.status == 200
    strict.wait_back(before)
    alone = request(strict.port, "POST", Route.COMPLETIONS.value, ask(Route.COMPLETIONS, prompt="p" * 500))
    assert alone.status == 200


MESSAGE = {"messages": [{"role": "user", "content": "m" * 60}]}


class Prober:
    """Asks for `/health` again and again, and keeps the slowest answer."""

    def __init__(self, port: int) -> None:
        self.num_answers = 0
        self._port = port
        self._is_over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="prober")

    def __enter__(self) -> "Prober":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._failure is None, self._failure

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                with RawClient(self._port, timeout_s=1.0) as client:
                    client.send("GET", "/health")
                    assert client.read_answer("GET").status == 200
                self.num_answers += 1
        except BaseException as failure:
            self._failure = failure


@pytest.mark.parametrize("route", Route, ids=["chat", "completions"])
def test_a_ten_megabyte_prompt_stalls_nobody(strict: ServerThread, route: Route) -> None:  # C170-1
    """The big request is refused; health answers within a second meanwhile, and so does another stream."""
    before = strict.rest()
    words = "word " * NUM_BIG_WORDS
    big = {"messages": [{"role": "user", "content": words}]} if route is Route.CHAT else {"prompt": words}
    script = {"pieces": hex_pieces("a"), "repeat": 100_000, "delays_s": [0.01]}
    with RawClient(strict.port, timeout_s=1.0) as runner, Prober(strict.port) as prober:
        runner.post(Route.CHAT.value, ask(Route.CHAT, script, stream=True))
        runner.read_head()
        answers: list[Answer] = []
        sender = threading.Thread(
            target=lambda: answers.append(request(strict.port, "POST", route.value, ask(route, **big)))
        )
        sender.start()
        num_chunks = 0
        while not answers or num_chunks < 20:
            assert runner.read_chunk() is not None
            num_chunks += 1
        sender.join()
        wait_until(lambda: prober.num_answers >= 5, "health answers")
    error = answers[0].json()["error"]
    assert answers[0].status in (400, 413)
    assert error["code"] == "context_length_exceeded"
    assert error["limit"]["name"] == "context_length"
    strict.wait_back(before)


def test_a_body_beyond_the_limit_is_refused_unread(strict: ServerThread) -> None:
    before = strict.rest()
    with RawClient(strict.port) as client:
        client.send("POST", Route.CHAT.value, b"{", {"Content-Length": str(64 * 1024 * 1024)})
        answer = client.read_answer()
    assert (answer.status, answer.json()["error"]["code"]) == (413, "body_too_large")
    assert answer.json()["error"]["limit"]["name"] == "body_bytes"
    strict.wait_back(before)
    assert engine_state(strict.admin_port)["ready"]
