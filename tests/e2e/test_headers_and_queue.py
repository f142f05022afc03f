"""Headers of a request as a caller meets them: what a header asks for is checked and honoured."""

from collections.abc import Iterator

import pytest

from harness.raw_http import request
from harness.server_thread import ServerThread

BODIES = {
    "/v1/chat/completions": {"model": "simulated", "messages": [{"role": "user", "content": "a"}], "max_tokens": 1},
    "/v1/completions": {"model": "simulated", "prompt": "a", "max_tokens": 1},
    "/v1/embeddings": {"model": "simulated", "input": "a"},
    "/v1/score": {"model": "simulated", "text_1": "a", "text_2": "b"},
    "/v1/rerank": {"model": "simulated", "query": "a", "documents": ["b"]},
    "/v1/classify": {"model": "simulated", "input": "a", "labels": ["b"]},
}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread("simulated") as running:
        yield running


@pytest.mark.parametrize("path", sorted(BODIES))
@pytest.mark.parametrize("name", ["X-Priority", "X-Deadline-Ms", "X-First-Token-Deadline-Ms"])
def test_a_malformed_header_is_refused_by_name_and_starts_nothing(server: ServerThread, path: str, name: str) -> None:
    before = server.look(lambda: server.running.supervisor.engine.statistics().gauges.num_steps)
    answer = request(server.port, "POST", path, BODIES[path], {name: "soon"})
    error = answer.json()["error"]
    assert (answer.status, error["code"], error["param"]) == (400, "invalid_value", name.lower())
    assert answer.headers["x-should-retry"] == "false"
    assert server.look(lambda: server.running.supervisor.engine.statistics().gauges.num_steps) == before


@pytest.mark.parametrize(("value", "status"), [("-100", 200), ("0", 200), ("100", 200), ("101", 400), ("high", 400)])
def test_a_priority_is_taken_within_its_range(server: ServerThread, value: str, status: int) -> None:
    answer = request(server.port, "POST", "/v1/completions", BODIES["/v1/completions"], {"X-Priority": value})
    assert answer.status == status


def test_tracing_headers_change_nothing(server: ServerThread) -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "X-Request-Id": "mine-1"}
    answer = request(server.port, "POST", "/v1/completions", BODIES["/v1/completions"], trace)
    assert answer.status == 200
    assert answer.headers["x-request-id"] == "mine-1"
    assert answer.headers["tidegate-contract"] == "1.0"


def test_the_time_in_the_queue_ends_where_the_prefill_begins() -> None:
    script = {"pieces": ["61"], "queue_delay_s": 0.1, "prefill_delay_s": 0.2}
    with ServerThread("scripted") as running:
        body = {"model": "scripted", "prompt": "a", "x_script": script}
        assert request(running.port, "POST", "/v1/completions", body).status == 200
        text = request(running.admin_port, "GET", "/metrics").body.decode()
    sums = {line.split(" ")[0]: float(line.split(" ")[1]) for line in text.splitlines() if "_seconds_sum" in line}
    queue_s, first_s = sums["tidegate_queue_time_seconds_sum"], sums["tidegate_time_to_first_token_seconds_sum"]
    assert 0.1 <= queue_s <= first_s - 0.2
