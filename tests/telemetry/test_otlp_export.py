"""Whole servers and a collector: what arrives, what never does, and that no request feels it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.faults import Route, ask, hex_pieces
from harness.otlp_collector import GotSpan, OtlpCollector
from harness.raw_http import RawClient, request
from harness.server_process import ServerProcess
from harness.server_thread import ServerThread, wait_until
from harness.server_view import read_metrics

pytestmark = pytest.mark.process

CHAT = Route.CHAT.value
SECRET, ANSWER, STOP = "the secret of the prompt", "the answer of the engine", "a stop of the caller"
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SERVER_KIND, INTERNAL_KIND = 2, 1


def parent(number: int, flags: str = "01") -> tuple[str, dict[str, str]]:
    """A trace id of its own, and the header that says it."""
    trace_id = f"{number:032x}"
    return trace_id, {"traceparent": f"00-{trace_id}-{SPAN}-{flags}", "tracestate": "congo=t61"}


def body(**fields: Any) -> Any:
    messages = [{"role": "user", "content": SECRET}]
    return ask(Route.CHAT, {"pieces": hex_pieces(ANSWER)}, **{"messages": messages, "stop": [STOP], **fields})


def wait_trace(collector: OtlpCollector, trace_id: str) -> dict[str, GotSpan]:
    """Waits for a trace's server span, which comes with all others."""
    wait_until(lambda: any(span.kind == SERVER_KIND for span in collector.of(trace_id)), f"trace {trace_id}")
    return {span.name: span for span in collector.of(trace_id)}


def serve(collector: OtlpCollector, **settings: Any) -> ServerThread:
    given = {"telemetry__exporter": "otlp", "telemetry__endpoint": collector.url, "telemetry__interval_s": 0.05}
    return ServerThread("scripted", **{**given, **settings})


@pytest.fixture(scope="module")
def collector() -> Iterator[OtlpCollector]:
    with OtlpCollector() as running:
        yield running


@pytest.fixture(scope="module")
def server(collector: OtlpCollector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    file = tmp_path_factory.mktemp("secrets") / "headers"
    file.write_text("# of the collector\nAuthorization: Bearer collector-secret\nx-tenant = blue\n")
    file.chmod(0o600)
    with serve(collector, telemetry__headers_file=str(file), telemetry__service_name="gate-test") as running:
        yield running


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_a_request_arrives_as_one_tree_of_spans(
    server: ServerThread, collector: OtlpCollector, is_stream: bool
) -> None:
    trace_id, headers = parent(1 + is_stream)
    with RawClient(server.port) as client:
        client.post(CHAT, body(stream=is_stream), headers | {"X-Request-Id": "mine"})
        client.read_answer()
    spans = wait_trace(collector, trace_id)
    assert {f"POST {CHAT}", "chat scripted", "queue", "prefill", "decode", "write"} >= spans.keys()
    assert {f"POST {CHAT}", "chat scripted", "queue", "prefill", "write"} <= spans.keys()
    outer, work = spans[f"POST {CHAT}"], spans["chat scripted"]
    assert (outer.parent, outer.kind, outer.state) == (SPAN, SERVER_KIND, "congo=t61")
    assert (work.parent, work.kind) == (outer.span_id, INTERNAL_KIND)
    assert {spans[name].parent for name in ("queue", "prefill")} == {work.span_id}
    assert all(outer.start_ns <= span.start_ns <= span.end_ns for span in spans.values())
    assert spans["write"].end_ns == outer.end_ns
    assert work.attributes["gen_ai.operation.name"] == "chat"
    assert work.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert work.attributes["gen_ai.request.stream"] is is_stream
    assert work.attributes["gen_ai.usage.output_tokens"] > 0
    assert outer.attributes["http.request.header.x-request-id"] == ["mine"]
    assert outer.attributes["server.port"] == server.port
    assert outer.resource["service.name"] == "gate-test"
    assert len(outer.resource["service.instance.id"]) == 32


def test_no_prompt_no_answer_and_no_secret_is_sent(server: ServerThread, collector: OtlpCollector) -> None:
    trace_id, headers = parent(3)
    key = "sk-abcdefghijklmnopqrstuvwxyz"
    secrets = {"Authorization": f"Bearer {key}", "User-Agent": f"Bearer {key}", "Cookie": key, "Idempotency-Key": key}
    with RawClient(server.port) as client:
        client.post(CHAT, body(), headers | secrets)
        client.read_answer()
    wait_trace(collector, trace_id)
    sent = b"".join(collector.bodies)
    for word in (SECRET, ANSWER, STOP, "abcdefghijkl", "collector-secret"):
        assert word.encode() not in sent
    assert "collector-secret" not in server.take_log()


def test_the_collectors_headers_are_sent_to_it(server: ServerThread, collector: OtlpCollector) -> None:
    trace_id, headers = parent(4)
    request(server.port, "POST", CHAT, body(), headers)
    wait_trace(collector, trace_id)
    assert set(collector.paths) == {"/v1/traces"}
    assert all(head["authorization"] == "Bearer collector-secret" for head in collector.headers)
    assert all(head["x-tenant"] == "blue" for head in collector.headers)


def test_a_refused_request_has_its_span_and_a_health_check_has_none(
    server: ServerThread, collector: OtlpCollector
) -> None:
    trace_id, headers = parent(5)
    probes, probing = parent(6)
    request(server.port, "GET", "/healthz", headers=probing)
    request(server.port, "GET", "/health", headers=probing)
    request(server.admin_port, "GET", "/metrics", headers=probing)
    assert request(server.port, "POST", CHAT, {"model": 1}, headers).status == 400
    [span] = [span for span in wait_trace(collector, trace_id).values() if span.kind == SERVER_KIND]
    assert span.attributes["tidegate.error.code"] == "invalid_value"
    assert "error.type" not in span.attributes, "a caller's mistake is none of ours"
    assert not collector.of(probes)


def test_a_caller_that_does_not_record_is_followed(server: ServerThread, collector: OtlpCollector) -> None:
    quiet, unsampled = parent(7, "00")
    loud, sampled = parent(8)
    request(server.port, "POST", CHAT, body(), unsampled)
    request(server.port, "POST", CHAT, body(), sampled)
    wait_trace(collector, loud)
    assert not collector.of(quiet)


def test_the_last_spans_are_sent_at_the_end(collector: OtlpCollector) -> None:
    trace_id, headers = parent(9)
    with serve(collector, telemetry__interval_s=60) as running:
        assert request(running.port, "POST", CHAT, body(), headers).status == 200
    assert wait_trace(collector, trace_id)


AWAY: dict[str, tuple[int | None, dict[str, str], str]] = {
    "does not understand": (400, {}, "code: 400"),
    "knows no such secret": (401, {}, "code: 401"),
    "is told too much": (429, {"Retry-After": "3600"}, "timeout"),
    "is broken": (500, {}, "code: 500"),
    "is overloaded": (503, {}, "timeout"),
    "is absent": (None, {}, "timeout"),
}


@pytest.mark.parametrize(("status", "headers", "why"), AWAY.values(), ids=AWAY)
def test_a_collector_that_takes_nothing_costs_spans_and_nothing_else(
    status: int | None, headers: dict[str, str], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with OtlpCollector(status or 200, headers) as away:
        url = away.url
        if status is not None:
            run_without_spans(away, url)
    if status is None:
        run_without_spans(away, url)
    lost = [line for line in caplog.messages if "spans are lost" in line]
    assert len(lost) == 1, "said once, not for each batch"
    assert why in lost[0]


def run_without_spans(away: OtlpCollector, url: str) -> None:
    settings = {"telemetry__endpoint": url, "telemetry__timeout_s": 0.5, "telemetry__flush_s": 0.2}
    with serve(away, **settings) as running:
        for _ in range(5):
            assert request(running.port, "POST", CHAT, body()).status == 200
        counted = "telemetry_requests_total"
        wait_until(lambda: read_metrics(running.admin_port).value(counted, outcome="failed") == 5, "all are counted")
    assert not away.spans


def test_a_collector_that_hangs_delays_nobody_and_what_does_not_fit_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = {"telemetry__queue_requests": 2, "telemetry__timeout_s": 60, "telemetry__flush_s": 0.1}
    with OtlpCollector() as slow:
        slow.gate.clear()
        with serve(slow, **settings) as running:
            trace_id, headers = parent(20)
            assert request(running.port, "POST", CHAT, body(), headers).status == 200

            def counted(name: str, **labels: str) -> float:
                return read_metrics(running.admin_port).value(f"telemetry_{name}", **labels)

            wait_until(lambda: counted("waiting_requests") == 0, "the exporter has the first, and hangs")
            for _ in range(12):
                assert request(running.port, "POST", CHAT, body()).status == 200
            wait_until(lambda: counted("requests_total", outcome="dropped") == 10, "two wait, ten are lost")
            assert counted("waiting_requests") == 2
            slow.gate.set()
            wait_until(lambda: counted("requests_total", outcome="exported") == 3, "the others arrive")
        assert wait_trace(slow, trace_id)
    assert len([line for line in caplog.messages if "spans are dropped" in line]) == 1
    assert not [line for line in caplog.messages if "spans are lost" in line]


def test_the_end_does_not_wait_for_a_collector_that_hangs() -> None:
    settings = {"telemetry__exporter": "otlp", "telemetry__timeout_s": 300, "telemetry__flush_s": 0.1}
    with OtlpCollector() as slow:
        slow.gate.clear()
        own = settings | {"telemetry__endpoint": slow.url, "telemetry__interval_s": 0.05}
        with ServerProcess("scripted", **own) as running:
            assert request(running.port, "POST", CHAT, body()).status == 200
            running.signal()
            assert running.wait() == 0
        assert not slow.spans


def test_the_standard_variables_are_honoured(collector: OtlpCollector, monkeypatch: pytest.MonkeyPatch) -> None:
    trace_id, headers = parent(10)
    variables = {
        "ENDPOINT": collector.url + "/",
        "HEADERS": "x-from=environment",
        "COMPRESSION": "gzip",
    }
    for name, value in variables.items():
        monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "named-by-environment")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "1.0")
    with ServerProcess(
        "scripted", telemetry__exporter="otlp", telemetry__interval_s=0.05, server__workers=2
    ) as running:
        unsampled = {"traceparent": headers["traceparent"][:-2] + "00"}
        assert request(running.port, "POST", CHAT, body(), unsampled).status == 200
        spans = wait_trace(collector, trace_id)
        counted = "telemetry_requests_total"
        wait_until(lambda: read_metrics(running.admin_port).value(counted, outcome="exported") == 1, "it is counted")
    outer = spans[f"POST {CHAT}"]
    assert outer.resource["service.name"] == "named-by-environment"
    assert outer.resource["deployment.environment.name"] == "test"
    assert [head for head in collector.headers if head.get("x-from") == "environment"][-1]["content-encoding"] == "gzip"


def test_otel_sdk_disabled_switches_all_off(monkeypatch: pytest.MonkeyPatch, collector: OtlpCollector) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    trace_id, headers = parent(11)
    with serve(collector) as running:
        assert request(running.port, "POST", CHAT, body(), headers).status == 200
        assert "telemetry_requests" not in request(running.admin_port, "GET", "/metrics").body.decode()
        wait_until(lambda: trace_id in running.look(running.log.getvalue), "its trace is in the log all the same")
    assert not collector.of(trace_id)


def test_without_the_extra_a_server_says_what_is_missing(tmp_path: Path) -> None:
    program = "import sys; sys.modules['opentelemetry'] = None\nfrom tidegate.cli.main import main; main()"
    server = ServerProcess("scripted", program, telemetry__exporter="otlp", server__state_dir=str(tmp_path))
    with pytest.raises(AssertionError, match=r"pip install 'tidegate\[telemetry\]'"):
        server.__enter__()


def test_without_spans_opentelemetry_is_never_loaded() -> None:
    program = "import sys; sys.modules['opentelemetry'] = None\nfrom tidegate.cli.main import main; main()"
    trace_id, headers = parent(12)
    with ServerProcess("scripted", program) as running:
        assert request(running.port, "POST", CHAT, body(), headers).status == 200
        wait_until(lambda: any(trace_id in line for line in running.lines), "the trace is in the log")
    [line] = [line for line in running.lines if trace_id in line]
    assert json.loads(line)["span_id"] == SPAN
    assert os.environ.get("OTEL_SDK_DISABLED") is None
