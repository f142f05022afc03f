"""Idempotency keys over HTTP, on whole servers: one operation, one run, one answer (CONTRACT.md section 10)."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from harness.event_stream import read_stream
from harness.faults import Route, ask, hex_pieces
from harness.keys import add_key, bearing
from harness.raw_http import Answer, RawClient, request
from harness.redis_server import RedisServer
from harness.server_thread import ServerThread, wait_until
from harness.server_view import Metrics, read_metrics

CHAT = Route.CHAT.value
SCRIPT = {"pieces": hex_pieces("on", "ce")}
FORMS = [(route, is_stream) for route in Route for is_stream in (False, True)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    with ServerThread("scripted", server__state_dir=str(tmp_path_factory.mktemp("state"))) as running:
        yield running


def post(server: ServerThread, key: str, body: Any, path: str = CHAT) -> Answer:
    return request(server.port, "POST", path, body, {"Idempotency-Key": key})


def num_runs(metrics: Metrics) -> float:
    return metrics.total("request_success_total") + metrics.total("aborts_total")


def engine_id(server: ServerThread) -> int:
    process_id = server.look(lambda: server.running.supervisor.process_id)
    assert process_id is not None
    return process_id


def is_replay(answer: Answer) -> bool:
    return answer.headers.get("idempotent-replayed") == "true"


@pytest.mark.parametrize(("route", "is_stream"), FORMS)
def test_a_retry_gets_the_same_bytes_and_costs_no_work(  # IDEM-2 IDEM-10
    server: ServerThread, route: Route, is_stream: bool
) -> None:
    body, key = ask(route, SCRIPT, stream=is_stream), f"{route.name}-{is_stream}"
    first = post(server, key, body, route.value)
    before = read_metrics(server.admin_port)
    again = post(server, f'"{key}"', dict(reversed(body.items())), route.value)
    now = read_metrics(server.admin_port)
    assert (first.status, again.status) == (200, 200)
    assert again.body == first.body
    assert (is_replay(first), is_replay(again)) == (False, True)
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    for name in ("content-type", "tidegate-served-revision"):
        assert again.headers[name] == first.headers[name]
    if is_stream:
        assert read_stream(again.body).is_done_last
        assert again.headers["x-accel-buffering"] == "no"
        assert "content-length" not in again.headers
    for counter in ("generation_tokens_total", "prompt_tokens_total", "engine_decode_tokens_total"):
        assert now.since(before, counter) == 0
    assert num_runs(now) == num_runs(before)
    assert now.since(before, "idempotency_claims_total", outcome="replayed") == 1
    assert now.value("idempotency_entries") >= 1


def test_the_key_absent_changes_nothing(server: ServerThread) -> None:  # IDEM-1
    answers = [request(server.port, "POST", CHAT, ask(Route.CHAT, SCRIPT)) for _ in range(2)]
    assert len({answer.json()["id"] for answer in answers}) == 2
    assert not any(map(is_replay, answers))


def test_another_body_is_422_and_starts_nothing(server: ServerThread) -> None:  # IDEM-3
    assert post(server, "reuse", ask(Route.CHAT, SCRIPT)).status == 200
    before = read_metrics(server.admin_port)
    answer = post(server, "reuse", ask(Route.CHAT, SCRIPT, seed=1))
    error = answer.json()["error"]
    assert (answer.status, error["type"], error["code"]) == (422, "idempotency_error", "idempotency_key_reuse")
    assert (error["param"], answer.headers["x-should-retry"]) == ("idempotency-key", "false")
    assert num_runs(read_metrics(server.admin_port)) == num_runs(before)


def test_of_fifty_equal_requests_at_once_one_runs(server: ServerThread) -> None:  # IDEM-4
    before = read_metrics(server.admin_port)
    os.kill(engine_id(server), signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(50) as pool:
            asked = [pool.submit(post, server, "fifty", ask(Route.CHAT, SCRIPT)) for _ in range(50)]
            wait_until(lambda: sum(one.done() for one in asked) == 49, "49 of them were told", 60)
            os.kill(engine_id(server), signal.SIGCONT)
            answers = [one.result() for one in asked]
    finally:
        os.kill(engine_id(server), signal.SIGCONT)
    assert sorted(answer.status for answer in answers) == [200] + [409] * 49
    for answer in answers:
        if answer.status == 409:
            assert (answer.headers["retry-after"], answer.headers["x-should-retry"]) == ("1", "true")
            assert answer.json()["error"]["code"] == "idempotency_key_in_use"
    assert num_runs(read_metrics(server.admin_port)) == num_runs(before) + 1


def test_the_official_client_retries_until_it_has_the_stored_answer(server: ServerThread) -> None:  # IDEM-4
    before = read_metrics(server.admin_port)
    given: Any = {
        "model": "scripted",
        "messages": [{"role": "user", "content": "hi"}],
        "extra_body": {"x_script": SCRIPT},
        "extra_headers": {"Idempotency-Key": "official"},
    }

    def told(outcome: str) -> float:
        return read_metrics(server.admin_port).since(before, "idempotency_claims_total", outcome=outcome)

    os.kill(engine_id(server), signal.SIGSTOP)
    try:
        client = OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=2, timeout=60)
        with client, ThreadPoolExecutor(2) as pool:
            first = pool.submit(client.chat.completions.create, **given)
            wait_until(lambda: told("fresh") == 1, "the first one runs")
            second = pool.submit(client.chat.completions.create, **given)
            wait_until(lambda: told("in_use") == 1, "the second one was told to come again")
            os.kill(engine_id(server), signal.SIGCONT)
            assert second.result() == first.result()
    finally:
        os.kill(engine_id(server), signal.SIGCONT)
    assert told("replayed") == 1
    assert num_runs(read_metrics(server.admin_port)) == num_runs(before) + 1


def test_what_was_refused_before_it_ran_runs_when_it_is_right(server: ServerThread) -> None:  # IDEM-5
    for body, status in ((ask(Route.CHAT, SCRIPT, temperature=9), 400), (ask(Route.CHAT, SCRIPT, model="no"), 404)):
        assert post(server, "mended", body).status == status
    assert post(server, "mended", ask(Route.CHAT, SCRIPT)).status == 200
    assert is_replay(post(server, "mended", ask(Route.CHAT, SCRIPT)))


def test_keys_of_two_callers_never_meet() -> None:  # IDEM-7
    with ServerThread("scripted") as running:
        state_dir = running.settings.server.state_dir
        assert state_dir is not None
        callers = [bearing(add_key(state_dir, who)) for who in ("one", "other")]
        wait_until(lambda: request(running.port, "GET", "/v1/models").status == 401, "the keys are known")
        bodies = [ask(Route.CHAT, {"pieces": hex_pieces(text)}) for text in ("mine", "yours")]

        def say(number: int) -> Answer:
            headers = {"Idempotency-Key": "same", **callers[number]}
            return request(running.port, "POST", CHAT, bodies[number], headers)

        first, second = [say(number) for number in (0, 1)], [say(number) for number in (0, 1)]
    assert [answer.status for answer in first + second] == [200] * 4
    assert first[0].json()["id"] != first[1].json()["id"]
    assert [is_replay(answer) for answer in first + second] == [False, False, True, True]
    assert [answer.body for answer in second] == [answer.body for answer in first]


@pytest.mark.parametrize("is_stream", [False, True])
def test_what_failed_runs_again(server: ServerThread, is_stream: bool) -> None:  # IDEM-6
    failing = ask(Route.CHAT, {**SCRIPT, "error_after": 1}, stream=is_stream)
    answers = [post(server, f"failed-{is_stream}", failing) for _ in range(2)]
    assert not any(map(is_replay, answers))
    assert post(server, f"failed-{is_stream}", ask(Route.CHAT, SCRIPT)).status == 200


def test_a_stream_whose_reader_left_runs_afresh(server: ServerThread) -> None:  # IDEM-10
    slow = ask(Route.CHAT, {**SCRIPT, "delays_s": [0, 60]}, stream=True)
    before = read_metrics(server.admin_port)
    with RawClient(server.port) as client:
        client.post(CHAT, slow, {"Idempotency-Key": "left"})
        assert client.read_head().status == 200
        assert post(server, "left", slow).status == 409
        client.close()
    wait_until(
        lambda: read_metrics(server.admin_port).since(before, "idempotency_ends_total", outcome="released") == 1,
        "the claim is given up",
    )
    answer = post(server, "left", ask(Route.CHAT, SCRIPT, stream=True))
    assert (answer.status, is_replay(answer), read_stream(answer.body).content()) == (200, False, "once")


MALFORMED = ["", " ", '""', "k" * 256, "schlüssel", "a b", '"a']


@pytest.mark.parametrize("value", MALFORMED)
def test_a_malformed_key_is_400(server: ServerThread, value: str) -> None:  # IDEM-8
    answer = post(server, value, ask(Route.CHAT, SCRIPT))
    error = answer.json()["error"]
    assert (answer.status, error["code"], error["param"]) == (400, "invalid_value", "idempotency-key")


HEADER_LINES = [
    (b"Idempotency-Key: a\r\nIdempotency-Key: a\r\n", 400),
    (b"Idempotency-Key: a\r\nIdempotency-Key:\r\n", 400),
    (b"Idempotency-Key:\r\nIdempotency-Key: a\r\n", 400),
    (b'Idempotency-Key: "a"\r\nidempotency-key: "b"\r\n', 400),
    (b"Idempotency-Key: caf\xe9\r\n", 400),
    (b"Idempotency-Key:spaces-around-it  \t\r\n", 200),
    (b"IDEMPOTENCY-KEY: " + b"k" * 255 + b"\r\n", 200),
]


@pytest.mark.parametrize("http", ["granian", "uvicorn"])
def test_header_lines_as_they_come_over_the_wire(http: str, tmp_path: Path) -> None:  # IDEM-8
    body = b'{"model":"scripted","messages":[{"role":"user","content":"a"}],"x_script":{"pieces":["61"]}}'
    with ServerThread("scripted", server__http=http, server__state_dir=str(tmp_path)) as server:
        for lines, status in HEADER_LINES:
            with RawClient(server.port) as client:
                head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                client.sock.sendall(head + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                assert client.read_answer().status == status, lines
        assert is_replay(request(server.port, "POST", CHAT, body, {"Idempotency-Key": "spaces-around-it"}))


def test_a_recorded_answer_needs_no_engine(tmp_path: Path) -> None:  # IDEM-2
    with ServerThread("scripted", server__state_dir=str(tmp_path)) as server:
        first = post(server, "a", ask(Route.CHAT, SCRIPT))
        os.kill(engine_id(server), signal.SIGSTOP)
        again = post(server, "a", ask(Route.CHAT, SCRIPT))
        server.kill_engine()
        wait_until(lambda: not server.look(lambda: server.running.supervisor.engine.is_ready), "the engine is gone")
        once_more = post(server, "a", ask(Route.CHAT, SCRIPT))
    assert first.body == again.body == once_more.body
    with ServerThread("scripted", server__state_dir=str(tmp_path)) as server:  # and outlives the server
        assert post(server, "a", ask(Route.CHAT, SCRIPT)).body == first.body


def test_without_a_store_the_header_is_422() -> None:
    with ServerThread("scripted", idempotency__store="off") as server:
        answer = post(server, "a", ask(Route.CHAT, SCRIPT))
        assert (answer.status, answer.json()["error"]["code"]) == (422, "unsupported_parameter")
        assert request(server.port, "POST", CHAT, ask(Route.CHAT, SCRIPT)).status == 200


@pytest.mark.process
def test_redis_serves_several_servers_and_may_go_and_come() -> None:  # IDEM-2
    with RedisServer() as redis:
        settings = {"idempotency__store": "redis", "idempotency__redis_url": redis.url}
        with ServerThread("scripted", **settings) as one, ServerThread("scripted", **settings) as other:
            first = post(one, "a", ask(Route.CHAT, SCRIPT, stream=True))
            again = post(other, "a", ask(Route.CHAT, SCRIPT, stream=True))
            assert (again.body, is_replay(again)) == (first.body, True)
            redis.stop()
            down = post(one, "b", ask(Route.CHAT, SCRIPT))
            assert (down.status, down.json()["error"]["code"]) == (503, "no_capacity")
            assert down.headers["retry-after"] == "1"
            assert request(one.port, "POST", CHAT, ask(Route.CHAT, SCRIPT)).status == 200
            redis.start()
            assert post(one, "b", ask(Route.CHAT, SCRIPT)).status == 200
            assert is_replay(post(other, "b", ask(Route.CHAT, SCRIPT)))
