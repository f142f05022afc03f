"""What one request may hold of a remote engine's answer."""

import asyncio
from typing import Any

import msgspec
import pytest

from harness.remote_scene import RemoteScene
from harness.remote_stand_in import Fault
from harness.vllm_speech import VllmSpeech
from tidegate.engines.remote import choice_run, client, http_carrier
from tidegate.engines.vllm_http.vllm_kind import VllmKind
from tidegate.errors import EngineLost, EngineRefused, EngineUnavailable
from tidegate.testing.check_engine import RecordingSink


def play(act: Any) -> None:
    async def run() -> None:
        async with RemoteScene(VllmSpeech(), VllmKind) as scene:
            await act(scene)

    asyncio.run(run())


def test_an_answer_that_is_no_stream_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_run, "MAX_BODY_BYTES", 200)

    async def act(scene: RemoteScene) -> None:
        sink = RecordingSink()
        scene.engine.submit(msgspec.structs.replace(scene.make_request("scored"), num_prompt_logprobs=3), sink)
        await scene.until(lambda: sink.has_ended)
        assert isinstance(sink.error, EngineLost)
        assert "more than 200 bytes" in scene.reports[0]["message"]

    play(act)


def test_the_body_of_a_refusal_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice_run, "MAX_ERROR_BYTES", 10)

    async def act(scene: RemoteScene) -> None:
        scene.stand_in.faults.append(Fault(status=500, body=b"x" * 100_000))
        sink = RecordingSink()
        scene.engine.submit(scene.make_request("refused"), sink)
        await scene.until(lambda: sink.has_ended)
        assert isinstance(sink.error, EngineRefused)
        assert scene.reports[0]["message"].endswith(": " + "x" * 10)

    play(act)


def test_requests_beyond_the_connections_are_refused_before_they_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_carrier, "MAX_CONNECTIONS", 3)

    async def act(scene: RemoteScene) -> None:
        with pytest.raises(EngineUnavailable, match="does not keep up"):
            scene.engine.submit(scene.make_request("many", num_choices=4), RecordingSink())
        assert scene.engine.num_open == 0

    play(act)


@pytest.mark.parametrize(("wait_s", "told"), [(0.01, 1), (7.2, 8), (9999.0, client.MAX_RETRY_AFTER_S)])
def test_advice_to_come_again_is_bounded(wait_s: float, told: int) -> None:
    async def act(scene: RemoteScene) -> None:
        scene.engine.lose("a test")
        scene.engine.retry_after_s = wait_s
        with pytest.raises(EngineUnavailable) as raised:
            scene.engine.submit(scene.make_request("refused"), RecordingSink())
        assert raised.value.retry_after_s == told
        assert scene.engine.statistics().retry_after_s == told

    play(act)


def test_a_request_that_an_engine_died_with_twice_is_refused_for_a_while() -> None:
    async def act(scene: RemoteScene) -> None:
        for name in ("first", "second"):
            sink = RecordingSink()
            scene.engine.submit(scene.make_request(name, max_tokens=2000), sink)
            await scene.lose()
            await scene.until(lambda: not scene.engine.is_ready)
            await scene.stand_in.start()
            await scene.until(lambda: scene.engine.is_ready)
            assert sink.has_ended
        with pytest.raises(EngineRefused, match="for a while"):
            scene.engine.submit(scene.make_request("third", max_tokens=2000), RecordingSink())
        assert scene.engine.statistics().num_poison_refusals == 1

    play(act)
