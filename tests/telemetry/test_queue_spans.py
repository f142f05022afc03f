"""A real server's requests that wait, and how each wait ends: a queue span with the outcome, whatever it is."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.faults import LONG_S, Route, ask, hex_pieces
from harness.otlp_collector import GotSpan, OtlpCollector
from harness.raw_http import Answer, RawClient
from harness.server_process import ServerProcess
from harness.server_thread import ServerThread, wait_until
from harness.server_view import engine_state, live_requests
from tidegate.lifecycle.engine_load import look_ahead

pytestmark = pytest.mark.process

CHAT = Route.CHAT.value
NUM_PERMITS = 1 + look_ahead(1)
SERVER, WORK, QUEUE = f"POST {CHAT}", "chat scripted", "queue"
UNSET, ERROR = 0, 2
QUEUE_MS = 1500


def settings(collector: OtlpCollector) -> dict[str, Any]:
    return {
        "engine__max_sequences": 1,
        "admission__queue_depth": 1,
        "admission__queue_deadline_ms": QUEUE_MS,
        "telemetry__exporter": "otlp",
        "telemetry__endpoint": collector.url,
        "telemetry__interval_s": 0.05,
    }


@pytest.fixture(scope="module")
def collector() -> Iterator[OtlpCollector]:
    with OtlpCollector() as running:
        yield running


@pytest.fixture(scope="module")
def server(collector: OtlpCollector) -> Iterator[ServerThread]:
    """Runs one request, and lets one wait, for a moment."""
    with ServerThread("scripted", **settings(collector)) as running:
        yield running


@pytest.fixture
def full(server: ServerThread) -> Iterator[ServerThread]:
    """The same, with all that it runs already running."""
    clients = occupy(server.port, server.admin_port)
    yield server
    for client in clients:
        client.close()
    wait_until(lambda: not live_requests(server.admin_port), "the place is free again")


def occupy(port: int, admin_port: int) -> list[RawClient]:
    body = ask(Route.CHAT, {"pieces": hex_pieces("a"), "prefill_delay_s": LONG_S})
    clients = [RawClient(port) for _ in range(NUM_PERMITS)]
    for number, client in enumerate(clients):
        client.post(CHAT, body, {"X-Request-Id": f"holder-{number}"})
    wait_until(lambda: len(live_requests(admin_port)) == NUM_PERMITS, "all places are taken")
    return clients


def traced(number: int, **headers: str) -> tuple[str, dict[str, str]]:
    trace_id = f"{number:032x}"
    return trace_id, {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01", "X-Request-Id": "waits", **headers}


def tree(collector: OtlpCollector, trace_id: str) -> dict[str, GotSpan]:
    wait_until(lambda: any(span.name == SERVER for span in collector.of(trace_id)), f"trace {trace_id}")
    spans = {span.name: span for span in collector.of(trace_id)}
    assert len(spans) == len(collector.of(trace_id))
    assert spans[WORK].parent == spans[SERVER].span_id
    assert spans[QUEUE].parent == spans[WORK].span_id
    assert not {"prefill", "decode"} & spans.keys(), "the engine never began"
    assert "gen_ai.response.id" not in spans[WORK].attributes
    assert "gen_ai.usage.input_tokens" not in spans[WORK].attributes
    assert spans[WORK].attributes["gen_ai.request.model"] == "scripted"
    assert spans[QUEUE].end_ns == spans[WORK].end_ns, "the wait is all there was"
    return spans


def check_refused(spans: dict[str, GotSpan], answer: Answer) -> None:
    code, is_ours = answer.json()["error"]["code"], answer.status >= 500
    outer, work, queue = spans[SERVER], spans[WORK], spans[QUEUE]
    assert outer.attributes["http.response.status_code"] == answer.status
    assert outer.attributes["tidegate.error.code"] == code
    assert outer.status == (ERROR if is_ours else UNSET)
    assert outer.attributes.get("error.type") == (code if is_ours else None)
    assert (work.status, work.attributes["error.type"]) == (ERROR, code)
    assert (queue.status, queue.attributes["error.type"]) == (ERROR, code)
    assert queue.attributes["tidegate.queue.outcome"] == code
    assert "tidegate.queue.gate_s" not in queue.attributes, "the gate never let it in"


def waited_s(spans: dict[str, GotSpan]) -> float:
    return (spans[QUEUE].end_ns - spans[QUEUE].start_ns) / 1e9


def post(port: int, headers: dict[str, str], **fields: Any) -> Answer:
    with RawClient(port) as client:
        client.post(CHAT, ask(Route.CHAT, **fields), headers)
        return client.read_answer()


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_a_wait_that_is_too_long_ends_in_no_capacity(
    full: ServerThread, collector: OtlpCollector, is_stream: bool
) -> None:
    trace_id, headers = traced(1 + is_stream)
    answer = post(full.port, headers, stream=is_stream)
    assert (answer.status, answer.json()["error"]["code"]) == (503, "no_capacity")
    spans = tree(collector, trace_id)
    check_refused(spans, answer)
    assert waited_s(spans) >= 0.9 * QUEUE_MS / 1000


def test_a_deadline_that_passes_in_the_queue_ends_the_wait(full: ServerThread, collector: OtlpCollector) -> None:
    trace_id, headers = traced(3, **{"X-Deadline-Ms": "500"})
    answer = post(full.port, headers)
    assert (answer.status, answer.json()["error"]["code"]) == (504, "deadline_exceeded")
    spans = tree(collector, trace_id)
    check_refused(spans, answer)
    assert 0 < waited_s(spans) < QUEUE_MS / 1000
    assert spans[SERVER].attributes["tidegate.outcome"] == "deadline"


def test_a_full_queue_is_a_wait_of_no_time(full: ServerThread, collector: OtlpCollector) -> None:
    with RawClient(full.port) as waiting:
        waiting.post(CHAT, ask(Route.CHAT), {"X-Request-Id": "first"})
        wait_until(lambda: "first" in live_requests(full.admin_port), "one waits")
        trace_id, headers = traced(4)
        answer = post(full.port, headers)
    assert (answer.status, answer.json()["error"]["code"]) == (429, "queue_full")
    spans = tree(collector, trace_id)
    check_refused(spans, answer)
    assert waited_s(spans) < QUEUE_MS / 1000


def test_a_client_that_goes_while_it_waits_ends_the_wait(full: ServerThread, collector: OtlpCollector) -> None:
    trace_id, headers = traced(5)
    with RawClient(full.port) as client:
        client.post(CHAT, ask(Route.CHAT), headers)
        wait_until(lambda: len(live_requests(full.admin_port)) == NUM_PERMITS + 1, "it waits")
    spans = tree(collector, trace_id)
    assert spans[QUEUE].attributes["tidegate.queue.outcome"] == "client_gone"
    assert "tidegate.queue.gate_s" not in spans[QUEUE].attributes
    assert spans[WORK].attributes["error.type"] == "client_gone"
    assert (spans[SERVER].status, spans[SERVER].attributes["tidegate.outcome"]) == (UNSET, "client_gone")
    assert "error.type" not in spans[SERVER].attributes
    assert "http.response.status_code" not in spans[SERVER].attributes
    assert "write" not in spans


def test_a_client_that_goes_in_the_engines_own_queue_had_been_let_in(
    server: ServerThread, collector: OtlpCollector
) -> None:
    trace_id, headers = traced(6)
    with RawClient(server.port) as client:
        client.post(CHAT, ask(Route.CHAT, {"pieces": hex_pieces("a"), "queue_delay_s": LONG_S}), headers)
        wait_until(lambda: engine_state(server.admin_port)["gauges"]["num_waiting"] == 1, "the engine has it")
    queue = tree(collector, trace_id)[QUEUE]
    assert queue.attributes["tidegate.queue.outcome"] == "client_gone"
    assert 0 <= queue.attributes["tidegate.queue.gate_s"] <= (queue.end_ns - queue.start_ns) / 1e9


def test_the_end_of_a_drain_ends_the_wait(collector: OtlpCollector) -> None:
    trace_id, headers = traced(7)
    own = settings(collector) | {"admission__queue_deadline_ms": 60_000, "server__drain_timeout_s": 0.3}
    with ServerProcess("scripted", **own) as server:
        clients = occupy(server.port, server.admin_port)
        with RawClient(server.port) as client:
            client.post(CHAT, ask(Route.CHAT), headers)
            wait_until(lambda: "waits" in live_requests(server.admin_port), "it waits")
            server.signal()
            answer = client.read_answer()
        assert (answer.status, answer.json()["error"]["code"]) == (503, "server_draining")
        assert server.wait() == 0
        for holder in clients:
            holder.close()
    check_refused(tree(collector, trace_id), answer)
