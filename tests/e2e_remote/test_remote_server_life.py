"""The life of a server in front of a remote engine: it waits for it, outlives it, and refuses another one."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.byte_folder import write_byte_folder
from harness.raw_http import RawClient, request
from harness.server_process import ServerProcess
from harness.server_thread import wait_until
from harness.stand_in_thread import StandInThread
from harness.vllm_speech import VllmSpeech

pytestmark = pytest.mark.process

CHAT = {"model": "m", "messages": [{"role": "user", "content": "abc"}], "max_tokens": 6, "temperature": 0}


@contextlib.contextmanager
def serve(folder: Path, stand_in: StandInThread, **settings: object) -> Iterator[ServerProcess]:
    own = {"model__served_model_name": "m", "engine__health_interval_s": 0.05, "engine__restart_wait_s": 0.05}
    write_byte_folder(folder)
    with ServerProcess("vllm-http", engine__url=stand_in.url, model__tokenizer=folder, **{**own, **settings}) as server:
        yield server


def status(server: ServerProcess, path: str) -> int:
    return request(server.admin_port, "GET", path).status


def ask_chat(server: ServerProcess) -> tuple[int, Any]:
    answer = request(server.port, "POST", "/v1/chat/completions", CHAT)
    return answer.status, answer.json()


def test_a_server_outlives_its_engine_and_takes_no_other(tmp_path: Path) -> None:
    speech = VllmSpeech()
    with StandInThread(speech) as far, serve(tmp_path, far) as server:
        assert ask_chat(server)[0] == 200
        with RawClient(server.port) as client:
            client.post("/v1/chat/completions", CHAT | {"max_tokens": 3000, "stream": True, "ignore_eos": True})
            head = client.read_head()
            first = client.read_chunk()
            far.call(far.stand_in.die)
            client.read_body(head)
        assert first is not None
        events = [event for event in head.body.split(b"\n\n") if event.startswith(b"data: ")]
        assert json.loads(events[-1].removeprefix(b"data: "))["error"]["code"] == "engine_lost"
        assert b"[DONE]" not in head.body
        wait_until(lambda: status(server, "/readyz") == 503, "the loss is seen")
        code, body = ask_chat(server)
        assert (code, body["error"]["code"]) == (503, "engine_unavailable")
        speech.model = "other/model"
        far.call(far.stand_in.start)
        wait_until(lambda: b"other/model" in request(server.admin_port, "GET", "/readyz").body, "it is named")
        assert ask_chat(server)[0] == status(server, "/readyz") == 503
        speech.model = "test/model"
        wait_until(lambda: status(server, "/readyz") == 200, "the engine is back")
        assert ask_chat(server)[0] == 200
        engine = request(server.admin_port, "GET", "/admin/v1/engine").json()
        assert (engine["epoch"], engine["restarts"], engine["process_id"]) == (2, 1, None)
        gauges = engine["gauges"]
        assert (gauges["num_waiting"], gauges["num_running"], gauges["blocks_used"]) == (0, 0, 0)


def test_an_engine_that_does_not_fit_ends_the_start_with_the_reason(tmp_path: Path) -> None:
    with StandInThread(VllmSpeech(max_model_len=100)) as far:
        server = ServerProcess(
            "vllm-http", engine__url=far.url, model__tokenizer=write_byte_folder(tmp_path), model__max_model_len=200
        )
        with pytest.raises(AssertionError, match="did not start"), server:
            pass
        assert server.wait() == 1
        assert "its sequences hold 100 tokens, and model.max_model_len is 200" in "".join(server.lines)


def test_several_workers_each_find_the_engine(tmp_path: Path) -> None:
    with StandInThread(VllmSpeech()) as far, serve(tmp_path, far, server__workers=2) as server:
        for _ in range(6):
            assert ask_chat(server)[0] == 200
        engine = request(server.admin_port, "GET", "/admin/v1/engine").json()
        assert engine["ready"]
        assert engine["gauges"]["num_output_tokens"] == 36
        text = request(server.admin_port, "GET", "/metrics").body.decode()
        assert "tidegate_engine_output_tokens_total 36.0" in text
        assert "tidegate_engine_up 1.0" in text
        refused = request(server.admin_port, "POST", "/admin/v1/cache/flush", {})
        assert refused.status == 422
