"""Clients that go away in odd ways: many choices, batches, storms, shared names, half a body. Nothing may be left."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from harness.event_stream import read_stream
from harness.faults import LONG_S, Caller, Cell, Phase, Route, ask, hex_pieces
from harness.raw_http import Answer, RawClient, request
from harness.server_thread import ServerThread, wait_until
from harness.server_view import ended_requests, engine_state, live_requests, read_metrics

pytestmark = pytest.mark.process

ENDLESS = {"pieces": hex_pieces("a", "b", "c"), "repeat": 1000, "delays_s": [0.01], "finish": "eos"}
NUM_STORM = 1000
NUM_AT_ONCE = 24
SLOW_STEP_S = 0.5


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("scripted") as running:
        request(running.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("x")}))
        yield running


def begin(server: ServerThread, route: Route, body: dict[str, Any], name: str) -> tuple[RawClient, Answer]:
    """Sends a streaming request and reads its head."""
    client = RawClient(server.port)
    client.post(route.value, body, {"X-Request-Id": name})
    return client, client.read_head()


def read_chunks(client: RawClient, answer: Answer, num_chunks: int) -> None:
    for _ in range(num_chunks):
        chunk = client.read_chunk()
        assert chunk is not None
        answer.body += chunk


def gauges(server: ServerThread) -> dict[str, Any]:
    state: dict[str, Any] = engine_state(server.admin_port)["gauges"]
    return state


BODIES = {
    "C161-1 one choice": (Route.CHAT, ask(Route.CHAT, ENDLESS, stream=True), 1),
    "C161-3 three choices": (Route.CHAT, ask(Route.CHAT, ENDLESS, stream=True, n=3), 3),
    "batch of prompts": (Route.COMPLETIONS, ask(Route.COMPLETIONS, ENDLESS, stream=True, prompt=["a", "b", "c"]), 3),
    "batch and choices": (Route.COMPLETIONS, ask(Route.COMPLETIONS, ENDLESS, stream=True, prompt=["a", "b"], n=2), 4),
}


@pytest.mark.parametrize("is_reset", [False, True], ids=["closes", "resets"])
@pytest.mark.parametrize("name", BODIES)
def test_every_choice_of_a_client_that_goes_is_aborted(  # DL-2
    server: ServerThread, name: str, is_reset: bool
) -> None:
    route, body, num_choices = BODIES[name]
    before, counted = server.rest(), read_metrics(server.admin_port)
    client, answer = begin(server, route, body, "many")
    read_chunks(client, answer, 2)
    wait_until(lambda: gauges(server)["num_running"] == num_choices, "all choices run")
    client.reset() if is_reset else client.close()
    server.wait_back(before)
    now = read_metrics(server.admin_port)
    assert now.since(counted, "aborts_total", cause="client_gone") == now.since(counted, "aborts_total") == 1
    assert now.since(counted, "stale_outputs_dropped_total") == 0


def test_choices_that_had_ended_stay_ended_when_the_client_goes(server: ServerThread) -> None:
    """One choice has stopped by a stop string, one by itself, one runs."""
    parts = [
        {"pieces": hex_pieces("x", "stop", "y"), "delays_s": [0.0, 0.0, LONG_S]},
        {"pieces": hex_pieces("x"), "delays_s": [0.0]},
        {"pieces": hex_pieces("x", "y"), "delays_s": [0.0, LONG_S]},
    ]
    before = server.rest()
    body = ask(Route.CHAT, {"choices": parts}, stream=True, n=3, stop=["stop"])
    client, answer = begin(server, Route.CHAT, body, "ended")
    while sum(len(read_stream(answer.body).finish_reasons(index)) for index in range(3)) < 2:
        read_chunks(client, answer, 1)
    wait_until(lambda: gauges(server)["num_running"] == 1, "only one choice is left in the engine")
    client.close()
    server.wait_back(before)


def test_an_abort_takes_effect_before_the_next_step(server: ServerThread) -> None:
    before = server.rest()
    num_before = gauges(server)["num_decode_tokens"]
    script = {"pieces": hex_pieces("a"), "repeat": 1000, "delays_s": [0.0, SLOW_STEP_S]}
    client, answer = begin(server, Route.CHAT, ask(Route.CHAT, script, stream=True), "prompt")
    while len(read_stream(answer.body).content()) < 2:
        read_chunks(client, answer, 1)
    client.close()
    server.wait_back(before)
    num_fed = gauges(server)["num_decode_tokens"] - num_before
    num_delivered = ended_requests(server.take_log())["prompt"]["num_completion_tokens"]
    # The last token of a sequence is never fed. Every second token comes at once, so one step may stand between.
    assert num_fed <= num_delivered <= 3


def test_a_stop_string_ends_the_work_in_the_engine_too(server: ServerThread) -> None:
    before, num_before = server.rest(), gauges(server)["num_decode_tokens"]
    script = {"pieces": hex_pieces("a", "stop", "b"), "delays_s": [0.0, 0.0, LONG_S]}
    for is_stream in (True, False):
        answer = request(
            server.port, "POST", Route.CHAT.value, ask(Route.CHAT, script, stream=is_stream, stop=["stop"])
        )
        assert (answer.status, answer.is_complete) == (200, True)
    server.wait_back(before)
    assert gauges(server)["num_decode_tokens"] - num_before <= 4


def test_a_storm_of_connects_and_drops_leaves_nothing(server: ServerThread) -> None:  # DL-3
    before, counted = server.rest(), read_metrics(server.admin_port)
    rng = random.Random(3)
    waiting: list[tuple[RawClient, bool]] = []
    for number in range(NUM_STORM):
        client = RawClient(server.port)
        is_stream = bool(number % 2)
        client.post(Route.CHAT.value, ask(Route.CHAT, ENDLESS, stream=is_stream))
        waiting.append((client, is_stream))
        rng.shuffle(waiting)
        while len(waiting) > NUM_AT_ONCE or (waiting and number == NUM_STORM - 1):
            leaver, has_head = waiting.pop()
            if has_head and rng.random() < 0.5:
                leaver.read_head()
            leaver.reset() if rng.random() < 0.5 else leaver.close()
    server.wait_back(before, timeout_s=40)
    now = read_metrics(server.admin_port)
    assert now.since(counted, "request_success_total") == 0
    num_known = now.since(counted, "requests_received_total")
    assert now.since(counted, "aborts_total", cause="client_gone") + now.since(counted, "requests_refused_total") == (
        num_known
    )
    assert '"level":"error"' not in server.take_log()
    healthy = request(server.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("well")}))
    assert healthy.json()["choices"][0]["message"]["content"] == "well"


def test_an_abort_or_hold_of_what_is_not_live_touches_nothing(server: ServerThread) -> None:  # DL-4
    before = server.rest()
    done = request(server.port, "POST", Route.CHAT.value, ask(Route.CHAT, {"pieces": hex_pieces("x")})).json()["id"]
    cell = Cell(Phase.LAST, Route.CHAT, is_stream=True)
    caller = Caller(server.port, cell, pause_s=0.5)
    caller.read_before()
    engine = server.running.supervisor.engine

    def interfere() -> None:
        for request_id in ("chatcmpl-unknown", done, "", "x" * 1000):
            engine.abort(request_id)
            engine.abort(request_id, 0)
            engine.hold(request_id, held=True)

    server.look(interfere)
    caller.read_rest()
    assert (caller.text(), caller.stream().finish_reasons()) == (cell.text, ["stop"])
    caller.client.close()
    server.wait_back(before)


def test_two_requests_of_one_name_live_and_end_apart(server: ServerThread) -> None:  # C163-1
    before = server.rest()
    script = {"pieces": hex_pieces("a", "b"), "delays_s": [0.0, 0.5]}
    pairs = [begin(server, Route.CHAT, ask(Route.CHAT, script, stream=True), "same-id") for _ in range(2)]
    for client, answer in pairs:
        read_chunks(client, answer, 2)
        assert answer.headers["x-request-id"] == "same-id"
    ids = {read_stream(answer.body).chunks[0]["id"] for _, answer in pairs}
    assert len(ids) == 2
    pairs[0][0].close()
    client, answer = pairs[1]
    client.read_body(answer)
    assert read_stream(answer.body).content() == "ab"
    assert answer.is_complete
    client.close()
    server.wait_back(before)


@pytest.mark.parametrize("is_reset", [False, True], ids=["closes", "resets"])
@pytest.mark.parametrize("sent", [b"", b'{"model":', b"x" * 900], ids=["nothing", "a little", "most"])
def test_a_client_that_goes_inside_its_body_leaves_nothing(server: ServerThread, sent: bytes, is_reset: bool) -> None:
    before, counted = server.rest(), read_metrics(server.admin_port)
    server.take_log()
    client = RawClient(server.port)
    client.send("POST", Route.CHAT.value, sent, {"Content-Length": "1000"})
    wait_until(lambda: server.baseline().num_tasks > before.num_tasks, "the request has arrived")
    client.reset() if is_reset else client.close()
    server.wait_back(before)
    now = read_metrics(server.admin_port)
    assert now.since(counted, "requests_received_total") == now.since(counted, "request_errors_total") == 0
    assert '"level":"error"' not in server.take_log()


def test_a_client_that_goes_while_its_prompt_is_prepared_is_counted(server: ServerThread) -> None:
    before, counted = server.rest(), read_metrics(server.admin_port)
    script = {"pieces": ["61"] * 900_000, "delays_s": [LONG_S]}
    client = RawClient(server.port)
    client.post(Route.CHAT.value, ask(Route.CHAT, script), {"X-Request-Id": "big"})
    wait_until(
        lambda: read_metrics(server.admin_port).since(counted, "requests_received_total") == 1, "the body has arrived"
    )
    client.reset()
    server.wait_back(before)
    now = read_metrics(server.admin_port)
    assert now.since(counted, "aborts_total", cause="client_gone") == 1
    assert live_requests(server.admin_port) == {}


def test_a_stream_with_a_request_behind_it_on_the_connection_ends_by_the_next_write(server: ServerThread) -> None:
    before = server.rest()
    client, answer = begin(server, Route.CHAT, ask(Route.CHAT, ENDLESS, stream=True), "ahead")
    read_chunks(client, answer, 2)
    client.post(Route.CHAT.value, ask(Route.CHAT, ENDLESS), {"X-Request-Id": "behind"})
    assert set(live_requests(server.admin_port)) == {"ahead"}
    client.reset()
    server.wait_back(before)
