"""One trace through every hop: a caller, this server and its spans, and an engine on another machine."""

import pytest

from harness.byte_folder import write_byte_folder
from harness.otlp_collector import OtlpCollector
from harness.raw_http import request
from harness.server_process import ServerProcess
from harness.server_thread import wait_until
from harness.stand_in_thread import StandInThread
from harness.vllm_speech import VllmSpeech

pytestmark = pytest.mark.process

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CHAT = "/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "abc"}], "max_tokens": 3, "temperature": 0}


def test_the_engine_hangs_its_spans_below_ours(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings: dict[str, object] = {
        "model__tokenizer": write_byte_folder(tmp_path_factory.mktemp("tokenizer")),
        "model__served_model_name": "m",
        "telemetry__exporter": "otlp",
        "telemetry__interval_s": 0.05,
    }
    with (
        OtlpCollector() as collector,
        StandInThread(VllmSpeech()) as far,
        ServerProcess("vllm-http", engine__url=far.url, telemetry__endpoint=collector.url, **settings) as server,
    ):
        given = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "congo=t61", "X-Request-Id": "mine"}
        assert request(server.port, "POST", CHAT, BODY, given).status == 200
        wait_until(lambda: any(span.kind == 2 for span in collector.of(TRACE)), "the trace arrives")
        [head] = [head for head in far.stand_in.heads if head.get("x-client-request-id") == "mine"]
        spans = {span.name: span for span in collector.of(TRACE)}
        work = spans["chat m"]
        assert head["traceparent"] == f"00-{TRACE}-{work.span_id}-01"
        assert head["tracestate"] == "congo=t61"
        assert spans[f"POST {CHAT}"].parent == SPAN
        assert work.parent == spans[f"POST {CHAT}"].span_id
        log = [line for line in server.lines if TRACE in line]
        assert len(log) == 1
        assert f'"span_id":"{work.parent}"' in log[0]
