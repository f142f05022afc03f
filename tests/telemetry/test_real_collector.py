"""A collector that shares no line with our exporter: it understands every span, and its death costs spans alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.faults import Route, ask, hex_pieces
from harness.otlp_collector import GotSpan, OtlpCollector
from harness.raw_http import RawClient, request
from harness.rotel import Rotel
from harness.server_thread import ServerThread, wait_until
from harness.server_view import Metrics, read_metrics

pytestmark = pytest.mark.process

CHAT = Route.CHAT.value
PARENT = "b7ad6b7169203331"
NUM_REQUESTS = 12


@pytest.fixture
def behind() -> Iterator[OtlpCollector]:
    """Where the collector sends what it has understood."""
    with OtlpCollector() as running:
        yield running


@pytest.fixture
def rotel(behind: OtlpCollector, tmp_path: Path) -> Iterator[Rotel]:
    with Rotel(behind.url, tmp_path) as running:
        yield running


def serve(rotel: Rotel, **settings: Any) -> ServerThread:
    given = {"telemetry__exporter": "otlp", "telemetry__endpoint": rotel.url, "telemetry__interval_s": 0.05}
    return ServerThread("scripted", **{**given, **settings})


def test_it_understands_every_span_as_it_was_meant(
    rotel: Rotel, behind: OtlpCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    trace_id = f"{7:032x}"
    headers = {"traceparent": f"00-{trace_id}-{PARENT}-01", "tracestate": "congo=t61,rojo=1", "X-Request-Id": "mine"}
    body = ask(Route.CHAT, {"pieces": hex_pieces("a", "b"), "delays_s": [0.0, 0.02]}, stream=True, seed=7)
    with serve(rotel, telemetry__service_name="through-rotel") as server, RawClient(server.port) as client:
        client.post(CHAT, body, headers)
        client.read_answer()
        wait_until(lambda: len(behind.of(trace_id)) == 6, "all spans came through")
        port = server.port
    spans = {span.name: span for span in behind.of(trace_id)}
    outer, work = spans[f"POST {CHAT}"], spans["chat scripted"]
    assert (outer.parent, outer.kind, outer.state) == (PARENT, 2, "congo=t61,rojo=1")
    assert {spans[name].parent for name in ("chat scripted", "write")} == {outer.span_id}
    assert {spans[name].parent for name in ("queue", "prefill", "decode")} == {work.span_id}
    assert {span.kind for span in spans.values()} == {1, 2}
    ends = [spans["queue"].end_ns, spans["prefill"].start_ns, spans["prefill"].end_ns, spans["decode"].start_ns]
    assert ends == sorted(ends)
    assert (ends[0], ends[2]) == (ends[1], ends[3]), "one stage ends where the next begins"
    check_values(outer, work, port)


def check_values(outer: GotSpan, work: GotSpan, port: int) -> None:
    """Each kind of value arrives as what it was."""
    assert outer.resource["service.name"] == "through-rotel"
    assert outer.attributes["http.request.header.x-request-id"] == ["mine"]
    assert (outer.attributes["server.port"], outer.attributes["http.response.status_code"]) == (port, 200)
    assert work.attributes["gen_ai.request.stream"] is True
    assert work.attributes["gen_ai.request.seed"] == 7
    assert work.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert isinstance(work.attributes["gen_ai.response.time_to_first_chunk"], float)


def test_its_death_costs_spans_and_nothing_else(
    rotel: Rotel, behind: OtlpCollector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tidegate.telemetry")
    with serve(rotel, telemetry__timeout_s=0.5, telemetry__flush_s=1) as server:

        def ask_some() -> None:
            for _ in range(NUM_REQUESTS):
                assert request(server.port, "POST", CHAT, ask(Route.CHAT)).status == 200

        def num_ended(metrics: Metrics) -> float:
            return metrics.total("telemetry_requests_total") + metrics.value("telemetry_waiting_requests")

        def outcome(name: str) -> float:
            return read_metrics(server.admin_port).value("telemetry_requests_total", outcome=name)

        ask_some()
        wait_until(lambda: outcome("exported") == NUM_REQUESTS, "all arrive")
        rotel.kill()
        ask_some()
        wait_until(lambda: outcome("failed") > 0, "what is sent now is lost")
        wait_until(lambda: read_metrics(server.admin_port).value("telemetry_waiting_requests") == 0, "all is decided")
        rotel.start()
        ask_some()
        wait_until(lambda: outcome("exported") + outcome("failed") == 3 * NUM_REQUESTS, "each is counted once")
        assert num_ended(read_metrics(server.admin_port)) == 3 * NUM_REQUESTS
        num_exported = int(outcome("exported"))
        wait_until(lambda: len(trees(behind)) == num_exported, "what is counted as exported has arrived")
    lost = [line for line in caplog.messages if "spans are lost" in line]
    assert len(lost) == 1, "said once"
    assert "Failed to export" in lost[0], "in the exporter's words"
    assert len([line for line in caplog.messages if "spans arrive again" in line]) == 1


def trees(behind: OtlpCollector) -> set[str]:
    return {span.trace_id for span in behind.spans if span.kind == 2}
