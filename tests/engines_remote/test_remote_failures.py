"""What goes wrong between a server and a remote engine: each request ends once, others go on, nothing is retried."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from harness.remote_scene import QUICK, RemoteScene
from harness.remote_stand_in import Fault
from harness.sglang_speech import SglangSpeech
from harness.vllm_speech import VllmSpeech
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.sglang.sglang_kind import SglangKind
from tidegate.engines.vllm_http.vllm_kind import VllmKind
from tidegate.errors import EngineLost, EngineRefused, EngineUnavailable, ServeError
from tidegate.inference.finish import EngineFinish
from tidegate.testing.check_engine import RecordingSink

SECRET = b'{"error": {"message": "CUDA error at /opt/engine/worker.py", "type": "x", "code": 500, "retryable": false}}'


def make_scene(name: str, **arguments: Any) -> RemoteScene:
    if name == "sglang":
        return RemoteScene(arguments.pop("speech", SglangSpeech()), SglangKind, **arguments)
    return RemoteScene(arguments.pop("speech", VllmSpeech()), VllmKind, **arguments)


def run_in(scene: RemoteScene, play: Callable[[RemoteScene], Awaitable[None]]) -> None:
    async def run() -> None:
        async with scene:
            await play(scene)

    asyncio.run(run())


both = pytest.mark.parametrize("name", ["vllm_http", "sglang"])


@dataclass(frozen=True)
class Case:
    fault: Fault
    error: type[ServeError]
    num_tokens: int = 0


CASES: dict[str, Case] = {
    "no room": Case(Fault(status=503, body=SECRET), EngineUnavailable),
    "too many": Case(Fault(status=429, body=SECRET), EngineUnavailable),
    "no key": Case(Fault(status=401, body=SECRET), EngineUnavailable),
    "no such route": Case(Fault(status=404, body=b"<html>"), EngineUnavailable),
    "bad request": Case(Fault(status=400, body=SECRET), EngineRefused),
    "unprocessable": Case(Fault(status=422, body=b""), EngineRefused),
    "internal": Case(Fault(status=500, body=SECRET), EngineRefused),
    "bad gateway": Case(Fault(status=502, body=b"\xff\xfe"), EngineRefused),
    "cut before the first event": Case(Fault(), EngineLost),
    "cut after events": Case(Fault(after=3), EngineLost, 3),
    "garbage": Case(Fault(after=2, send=b"data: {nope}\n\n"), EngineLost, 2),
    "other types": Case(Fault(after=1, send=b'data: {"choices": 7, "meta_info": 7}\n\n'), EngineLost, 1),
    "half an event": Case(Fault(after=2, send=b'data: {"choices": [{"ind'), EngineLost, 2),
    "no event stream": Case(Fault(after=1, send=b"<html>\n\n"), EngineLost, 1),
    "not UTF-8": Case(Fault(after=1, send=b"data: \xff\xfe\n\n"), EngineLost, 1),
    "done too early": Case(Fault(after=2, send=b"data: [DONE]\n\n", ends=False), EngineLost, 2),
    "ended too early": Case(Fault(after=2, ends=False), EngineLost, 2),
}


@both
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_goes_wrong_with_one_request_ends_it_once_and_touches_no_other(case: Case, name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        before, other = RecordingSink(), RecordingSink()
        scene.engine.submit(scene.make_request("before", max_tokens=40), before)
        await scene.until(lambda: bool(before.token_ids[0]))
        scene.stand_in.faults.append(case.fault)
        sink = RecordingSink()
        scene.engine.submit(scene.make_request("faulty"), sink)
        await scene.until(lambda: sink.has_ended)
        scene.engine.submit(scene.make_request("other"), other)
        await scene.until(lambda: before.has_ended and other.has_ended)
        for one in (before, sink, other):
            one.check()
        assert type(sink.error) is case.error
        assert len(sink.token_ids[0]) == case.num_tokens
        assert "CUDA" not in sink.error.message
        assert before.finishes == other.finishes == {0: EngineFinish.LENGTH}
        assert sorted(scene.stand_in.names) == sorted({*scene.stand_in.names})
        assert scene.engine.is_ready
        assert scene.engine.statistics().epoch == 1
        assert scene.reports, "an operator is told"

    run_in(make_scene(name), play)


@both
def test_an_error_event_ends_its_choice_alone_and_its_words_stay_here(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        scene.stand_in.faults.append(Fault(after=1, send=b"data: " + SECRET + b"\n\ndata: [DONE]\n\n", ends=False))
        sink = RecordingSink(num_choices=2)
        scene.engine.submit(scene.make_request("faulty", num_choices=2), sink)
        await scene.until(lambda: sink.has_ended)
        sink.check()
        assert set(sink.finishes.values()) == {EngineFinish.FAILED, EngineFinish.LENGTH}
        assert list(sink.errors_of_choices.values()) == ["The engine failed on this request."]

    run_in(make_scene(name), play)


@both
def test_a_broken_choice_fails_the_whole_request_once_and_ends_the_others_in_the_engine(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        scene.stand_in.faults.append(Fault(after=2))
        sink = RecordingSink(num_choices=3)
        scene.engine.submit(scene.make_request("faulty", num_choices=3, max_tokens=100), sink)
        await scene.until(lambda: sink.has_ended)
        await scene.until(lambda: scene.stand_in.pair.engine.num_open == 0)
        sink.check()
        assert isinstance(sink.error, EngineLost)
        assert scene.engine.num_open == 0

    run_in(make_scene(name), play)


@both
def test_an_engine_that_cannot_be_reached_refuses_without_running_and_comes_back_under_a_new_epoch(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        lost: list[str] = []
        scene.engine.on_lost.append(lost.append)
        await scene.stand_in.die()
        sink = RecordingSink()
        scene.engine.submit(scene.make_request("into the void"), sink)
        await scene.until(lambda: sink.has_ended)
        assert isinstance(sink.error, (EngineUnavailable, EngineLost))
        await scene.until(lambda: not scene.engine.is_ready)
        with pytest.raises(EngineUnavailable):
            scene.engine.submit(scene.make_request("refused"), sink)
        status = scene.engine.statistics()
        assert "is away" in (status.condition or "")
        await scene.stand_in.start()
        await scene.until(lambda: scene.engine.is_ready)
        again = RecordingSink()
        scene.engine.submit(scene.make_request("again"), again)
        await scene.until(lambda: again.has_ended)
        assert again.finishes == {0: EngineFinish.LENGTH}
        status = scene.engine.statistics()
        assert (status.epoch, status.num_restarts, len(lost)) == (2, 1, 1)

    run_in(make_scene(name), play)


@both
def test_another_model_under_the_same_address_is_not_served(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        await scene.stand_in.die()
        speech: Any = scene.stand_in.speech
        first = speech.model
        speech.model = "other/model"
        await scene.stand_in.start()
        await scene.until(lambda: "cannot be served" in (scene.engine.statistics().condition or ""))
        condition = scene.engine.statistics().condition or ""
        assert "other/model" in condition
        assert first in condition
        with pytest.raises(EngineUnavailable):
            scene.engine.submit(scene.make_request("refused"), RecordingSink())
        speech.model = first
        await scene.until(lambda: scene.engine.is_ready)
        assert scene.engine.statistics().epoch == 2

    run_in(make_scene(name), play)


@both
def test_an_engine_that_was_started_anew_between_two_looks_is_lost_and_ready_again(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        speech: Any = scene.stand_in.speech
        if name == "sglang":
            speech.random_seed += 1
        else:
            speech.boot += 1
        scene.pool.cut_all()
        await scene.until(lambda: scene.engine.statistics().epoch == 2 and scene.engine.is_ready)

    run_in(make_scene(name), play)


@both
def test_an_engine_that_says_that_it_is_ill_is_lost_and_every_sink_fails_once(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        sink = RecordingSink(num_choices=2)
        scene.engine.submit(scene.make_request("long", num_choices=2, max_tokens=3000), sink)
        await scene.until(lambda: sink.has_begun)
        speech: Any = scene.stand_in.speech
        speech.health = 503
        await scene.until(lambda: sink.has_ended)
        sink.check()
        assert isinstance(sink.error, EngineLost)
        assert not scene.engine.is_ready
        assert "status 503" in (scene.engine.statistics().condition or "")
        gauges = scene.engine.statistics().gauges
        assert (gauges.num_waiting, gauges.num_running, gauges.num_held, gauges.blocks_used) == (0, 0, 0, 0)
        speech.health = 200
        await scene.until(lambda: scene.engine.is_ready)

    run_in(make_scene(name), play)


@both
def test_silence_of_everything_that_is_open_is_a_stall(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        scene.stand_in.faults.append(Fault(after=2, is_silent=True))
        sink = RecordingSink()
        scene.engine.submit(scene.make_request("silent", max_tokens=50), sink)
        await scene.until(lambda: sink.has_ended)
        sink.check()
        assert isinstance(sink.error, EngineLost)
        assert scene.engine.statistics().num_stalls == 1
        await scene.until(lambda: scene.engine.is_ready)

    run_in(make_scene(name, settings=replace(QUICK, stall_timeout_s=0.1)), play)


@both
def test_new_requests_do_not_hide_that_an_engine_is_silent(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        scene.stand_in.faults += [Fault(is_silent=True)] * 5000
        sinks: list[RecordingSink] = []

        def is_lost() -> bool:
            if scene.engine.is_ready and len(sinks) < 500 and scene.engine.num_open <= len(sinks):
                sinks.append(RecordingSink())
                scene.engine.submit(scene.make_request(f"silent-{len(sinks)}"), sinks[-1])
            return scene.engine.statistics().num_stalls == 1

        await scene.until(is_lost)
        await scene.until(lambda: all(sink.has_ended for sink in sinks))
        assert all(isinstance(sink.error, EngineLost) for sink in sinks)

    run_in(make_scene(name, settings=replace(QUICK, stall_timeout_s=0.1)), play)


@both
def test_a_held_request_is_no_stall(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        sink = RecordingSink()
        scene.engine.submit(scene.make_request("held", max_tokens=20), sink)
        scene.engine.hold("held", held=True)
        looked: list[int] = []
        scene.watch.engine.describe = lambda: ""
        loop = asyncio.get_running_loop()
        until = loop.time() + 0.2
        await scene.until(lambda: loop.time() > until)
        assert not looked
        assert scene.engine.statistics().num_stalls == 0
        scene.engine.hold("held", held=False)
        await scene.until(lambda: sink.has_ended)
        assert len(sink.token_ids[0]) == 20

    run_in(make_scene(name, settings=replace(QUICK, stall_timeout_s=0.05)), play)


@both
def test_no_abort_lets_a_late_token_through_at_whatever_turn_it_comes(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        for num_turns in range(0, 40, 2):
            sink = RecordingSink(num_choices=2)
            scene.engine.submit(scene.make_request(f"raced-{num_turns}", num_choices=2, max_tokens=6), sink)
            for _ in range(num_turns):
                await asyncio.sleep(0)
            scene.engine.abort(f"raced-{num_turns}")
            seen = [list(ids) for ids in sink.token_ids]
            await scene.until(lambda sink=sink: sink.has_ended)  # type: ignore[misc]
            assert sink.token_ids == seen
            sink.check()
        await scene.until(lambda: scene.stand_in.pair.engine.num_open == 0)

    run_in(make_scene(name), play)


@both
def test_a_sink_that_raises_loses_its_own_request_only(name: str) -> None:
    class Raising(RecordingSink):
        def deliver(self, delta: Any) -> None:
            raise ValueError("a fault of ours")

    async def play(scene: RemoteScene) -> None:
        raising, other = Raising(), RecordingSink()
        scene.engine.submit(scene.make_request("raising", max_tokens=300), raising)
        scene.engine.submit(scene.make_request("other"), other)
        await scene.until(lambda: raising.has_ended and other.has_ended)
        await scene.until(lambda: scene.stand_in.pair.engine.num_open == 0)
        assert other.finishes == {0: EngineFinish.LENGTH}
        assert [one["message"] for one in scene.reports] == ["a sink raised"]

    run_in(make_scene(name), play)


@both
def test_more_tokens_than_were_asked_for_are_not_believed(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        one = (
            b'{"choices":[{"index":0,"token_ids":[1,2,3]}]}'
            if name == "vllm_http"
            else (b'{"output_ids":[1,2,3],"meta_info":{}}')
        )
        scene.stand_in.faults.append(Fault(send=b"data: " + one + b"\n\n", is_silent=True, ends=False))
        sink = RecordingSink()
        scene.engine.submit(scene.make_request("short", max_tokens=2), sink)
        await scene.until(lambda: sink.has_ended)
        assert isinstance(sink.error, EngineLost)
        assert sink.token_ids == [[]]

    run_in(make_scene(name), play)


@both
def test_a_wrong_key_is_said_at_the_start(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        with pytest.raises(EngineStartFailed, match=r"engine\.api_key_file"):
            await scene.watch.wait_ready()

    scene = make_scene(name, waits=False, api_key="mine")
    scene.stand_in.api_key = "theirs"
    run_in(scene, play)


@both
def test_the_right_key_is_sent_with_everything(name: str) -> None:
    async def play(scene: RemoteScene) -> None:
        sink = RecordingSink()
        scene.engine.submit(scene.make_request("keyed"), sink)
        await scene.until(lambda: sink.has_ended)
        assert sink.error is None

    scene = make_scene(name, api_key="theirs")
    scene.stand_in.api_key = "theirs"
    run_in(scene, play)


@pytest.mark.parametrize("num_turns", range(5))
def test_the_watch_ends_although_trouble_comes_in_the_same_turn(num_turns: int) -> None:
    async def play(scene: RemoteScene) -> None:
        for observer in scene.engine.on_trouble:
            observer()
        for _ in range(num_turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await scene.watch.aclose()

    run_in(make_scene("vllm_http"), play)
