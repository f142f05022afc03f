"""Readers that are slow, stop, or never begin: they hold up themselves and nobody else, and lose nothing."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.event_stream import Stream, read_stream
from harness.faults import Route, ask, hex_pieces
from harness.raw_http import Answer, RawClient, request
from harness.server_thread import ServerThread, wait_until
from harness.server_view import ended_requests, engine_state, read_metrics
from harness.streamed_calls import calls_of

pytestmark = pytest.mark.process

BUFFER_BYTES = 4096
UNSENT_BYTES = 4096
PIECES = [f"{number:02}:" + "0123456789" * 12 for number in range(25)]
NUM_REPEATS = 80
NUM_TOKENS = len(PIECES) * NUM_REPEATS
SCRIPT = {"pieces": hex_pieces(*PIECES), "repeat": NUM_REPEATS, "finish": "eos"}
TEXT = "".join(PIECES) * NUM_REPEATS
PACE_S = 0.001
"""The engine's time for a token of a reader that does not read."""
NUM_STUCK = 64
SMALL = {"server__send_buffer_bytes": BUFFER_BYTES, "server__unsent_bytes": UNSENT_BYTES}


@pytest.fixture(scope="module")
def patient() -> Iterator[ServerThread]:
    with ServerThread("scripted", **SMALL) as running:
        request(running.port, "POST", Route.CHAT.value, ask(Route.CHAT))
        yield running


@pytest.fixture(scope="module")
def strict() -> Iterator[ServerThread]:
    with ServerThread("scripted", server__slow_client_timeout_s=1.0, **SMALL) as running:
        request(running.port, "POST", Route.CHAT.value, ask(Route.CHAT))
        yield running


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def stall(server: ServerThread, stack: ExitStack, route: Route = Route.CHAT, **fields: Any) -> RawClient:
    """A client that asks for a long stream and does not read. Paced, so that no engine is done before a hold comes."""
    client = stack.enter_context(RawClient(server.port, receive_buffer_bytes=BUFFER_BYTES))
    script = SCRIPT | {"delays_s": [0.0, PACE_S]}
    body = ask(route, script, stream=True, stream_options={"include_usage": True}, **fields)
    client.post(route.value, body, {"X-Request-Id": "stalled"})
    return client


def gauge(server: ServerThread, name: str) -> int:
    return int(engine_state(server.admin_port)["gauges"][name])


def wait_held(server: ServerThread, num_held: int = 1) -> None:
    wait_until(
        lambda: gauge(server, "num_held") == num_held and gauge(server, "num_running") == 0, f"{num_held} are held"
    )


def read_to_end(client: RawClient) -> tuple[Answer, Stream]:
    answer = client.read_answer()
    return answer, read_stream(answer.body)


def text_of(stream: Stream, route: Route, index: int = 0) -> str:
    return stream.content(index) if route is Route.CHAT else stream.text(index)


@pytest.mark.parametrize("route", Route, ids=["chat", "completions"])
def test_a_reader_that_stops_and_comes_back_gets_the_same_text(  # SLOW-2
    patient: ServerThread, stack: ExitStack, route: Route
) -> None:
    before = patient.rest()
    num_before = gauge(patient, "num_decode_tokens")
    undisturbed = read_stream(request(patient.port, "POST", route.value, ask(route, SCRIPT, stream=True)).body)
    num_whole = gauge(patient, "num_decode_tokens") - num_before
    client = stall(patient, stack, route)
    wait_held(patient)
    other = read_stream(request(patient.port, "POST", route.value, ask(route, SCRIPT, stream=True)).body)
    assert text_of(other, route) == TEXT
    assert gauge(patient, "num_held") == 1
    num_held_tokens = gauge(patient, "num_decode_tokens") - num_before - 2 * num_whole
    assert num_held_tokens < NUM_TOKENS / 2, "the engine stopped long before the end"
    answer, stream = read_to_end(client)
    assert answer.is_complete
    assert stream.findings == []
    assert text_of(stream, route) == text_of(undisturbed, route) == TEXT
    assert (stream.finish_reasons(), stream.num_done, stream.is_done_last) == (["stop"], 1, True)
    assert stream.usage is not None
    assert stream.usage["completion_tokens"] == NUM_TOKENS
    assert len(stream.choices()) < NUM_TOKENS, "what waited was merged"
    client.close()
    patient.wait_back(before)
    assert gauge(patient, "num_decode_tokens") - num_before == 3 * num_whole, "nothing was computed twice"


def test_every_choice_of_a_reader_that_comes_back_is_whole(patient: ServerThread, stack: ExitStack) -> None:
    before = patient.rest()
    client = stall(patient, stack, n=3, logprobs=True)
    wait_held(patient, 3)
    _, stream = read_to_end(client)
    for index in range(3):
        assert stream.content(index) == TEXT
        assert stream.finish_reasons(index) == ["stop"]
        parts = [choice["logprobs"]["content"] for choice in stream.choices(index) if choice.get("logprobs")]
        assert "".join(entry["token"] for part in parts for entry in part) == TEXT
    client.close()
    patient.wait_back(before)


def test_a_reader_that_reads_a_little_at_a_time_gets_everything(patient: ServerThread, stack: ExitStack) -> None:
    """The engine is held and let go many times."""
    before = patient.rest()
    client = stall(patient, stack)
    answer = client.read_head()
    num_holds = 0
    while True:
        wait_until(lambda: gauge(patient, "num_running") == 0, "held, or done")
        if not gauge(patient, "num_held"):
            break
        num_holds += 1
        num_tokens = gauge(patient, "num_decode_tokens")
        while gauge(patient, "num_decode_tokens") == num_tokens:
            chunk = client.read_chunk()
            assert chunk is not None
            answer.body += chunk
    assert num_holds >= 3
    client.read_body(answer)
    assert read_stream(answer.body).content() == TEXT
    client.close()
    patient.wait_back(before)


@pytest.mark.parametrize("kind", ["function", "custom"])
def test_a_big_call_of_a_reader_that_stalls_arrives_whole_in_merged_deltas(
    patient: ServerThread, stack: ExitStack, kind: str
) -> None:
    before = patient.rest()
    begin, end = '<tool_call>{"name": "write", "arguments": {"input": "', '"}}</tool_call>'
    written = [*(begin[i : i + 1] for i in range(len(begin))), *PIECES * NUM_REPEATS, end]
    script = {"pieces": hex_pieces(*written), "finish": "eos", "delays_s": [0.0, PACE_S], "parsers": {"tool": "hermes"}}
    client = stack.enter_context(RawClient(patient.port, receive_buffer_bytes=BUFFER_BYTES))
    tools = [{"type": kind, kind: {"name": "write"}}]
    client.post(Route.CHAT.value, ask(Route.CHAT, script, stream=True, tools=tools), {"X-Request-Id": "stalled"})
    wait_held(patient)
    answer, stream = read_to_end(client)
    assert answer.is_complete
    assert stream.findings == []
    (call,) = calls_of(stream)
    assert (call.kind, call.name) == (kind, "write")
    assert (call.text if kind == "custom" else json.loads(call.text)["input"]) == TEXT
    assert (stream.finish_reasons(), stream.content()) == (["tool_calls"], "")
    assert len(stream.choices()) < NUM_TOKENS, "what waited was merged"
    client.close()
    patient.wait_back(before)


@pytest.mark.parametrize("is_reset", [False, True], ids=["closes", "resets"])
def test_a_held_reader_that_goes_leaves_nothing(patient: ServerThread, stack: ExitStack, is_reset: bool) -> None:
    before, counted = patient.rest(), read_metrics(patient.admin_port)
    client = stall(patient, stack)
    wait_held(patient)
    client.reset() if is_reset else client.close()
    patient.wait_back(before)
    assert read_metrics(patient.admin_port).since(counted, "aborts_total", cause="client_gone") == 1


def test_a_held_reader_is_told_when_the_engine_dies(patient: ServerThread, stack: ExitStack) -> None:
    before = patient.rest()
    client = stall(patient, stack)
    wait_held(patient)
    patient.kill_engine()
    answer, stream = read_to_end(client)
    assert TEXT.startswith(stream.content())
    assert len(stream.content()) >= UNSENT_BYTES
    assert stream.errors[0]["code"] == "engine_lost"
    assert (stream.finish_reasons(), stream.num_done, answer.is_complete) == ([], 0, False)
    client.close()
    patient.wait_ready()
    patient.wait_back(before)


def test_a_whole_reply_is_never_held(patient: ServerThread) -> None:
    answer = request(patient.port, "POST", Route.CHAT.value, ask(Route.CHAT, SCRIPT))
    assert answer.json()["choices"][0]["message"]["content"] == TEXT


def test_a_reader_that_never_reads_is_cut_off_and_counted(strict: ServerThread, stack: ExitStack) -> None:  # SLOW-1
    before, counted = strict.rest(), read_metrics(strict.admin_port)
    strict.take_log()
    client = stall(strict, stack)
    wait_until(lambda: "stalled" in ended_requests(strict.log.getvalue()), "the stream is ended")
    ended = ended_requests(strict.take_log())["stalled"]
    assert (ended["outcome"], ended["status"]) == ("slow_client", 200)
    answer = client.read_answer()
    stream = read_stream(answer.body[: answer.body.rfind(b"\n\n") + 2])
    assert not answer.is_complete
    assert (stream.finish_reasons(), stream.num_done) == ([], 0)
    assert TEXT.startswith(stream.content())
    client.close()
    strict.wait_back(before)
    now = read_metrics(strict.admin_port)
    assert now.since(counted, "aborts_total") == now.since(counted, "aborts_total", cause="slow_client") == 1


def test_many_stuck_readers_leave_a_healthy_stream_alone(strict: ServerThread, stack: ExitStack) -> None:  # SLOW-1
    before, counted = strict.rest(), read_metrics(strict.admin_port)
    stuck = [stall(strict, stack) for _ in range(NUM_STUCK)]
    healthy = read_stream(request(strict.port, "POST", Route.CHAT.value, ask(Route.CHAT, SCRIPT, stream=True)).body)
    assert (healthy.content(), healthy.finish_reasons(), healthy.is_done_last) == (TEXT, ["stop"], True)
    wait_until(
        lambda: read_metrics(strict.admin_port).since(counted, "aborts_total", cause="slow_client") == NUM_STUCK,
        "all stuck readers are cut off",
    )
    for client in stuck:
        client.close()
    strict.wait_back(before)
    assert read_metrics(strict.admin_port).since(counted, "request_success_total") == 1
