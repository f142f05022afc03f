"""What the way into vLLM refuses, and what it leaves behind when the engine has gone."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from harness.llm_scene import LlmScene
from harness.llm_stand_in import EngineDeadError, StandInLibrary, StandInLlm
from tidegate.engines.vllm import llm_carrier
from tidegate.errors import EngineUnavailable, UnsupportedParameter
from tidegate.inference.grammar_spec import GrammarRule, JsonObjectSpec
from tidegate.testing.check_engine import RecordingSink


def play(act: Callable[[LlmScene], Awaitable[None]], **scene: Any) -> None:
    async def run() -> None:
        async with LlmScene(**scene) as entered:
            await act(entered)

    asyncio.run(run())


def test_as_many_choices_as_there_is_room_for_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_carrier, "MAX_RUNS", 3)

    async def act(scene: LlmScene) -> None:
        sink = RecordingSink(num_choices=3)
        scene.engine.submit(scene.make_request("three", num_choices=3), sink)
        await scene.until(lambda: sink.has_ended)
        assert sink.error is None

    play(act)


def test_a_constraint_is_refused_before_anything_runs_where_none_is_served() -> None:
    async def act(scene: LlmScene) -> None:
        request = msgspec.structs.replace(scene.make_request("r"), grammar=GrammarRule(JsonObjectSpec()))
        request = msgspec.structs.replace(request, stop=msgspec.structs.replace(request.stop, ignore_eos=False))
        with pytest.raises(UnsupportedParameter, match="does not enforce grammars"):
            scene.carrier.check(request)

    play(act)


def test_without_an_engine_there_is_no_cache_to_drop() -> None:
    async def run() -> None:
        with pytest.raises(EngineUnavailable):
            await llm_carrier.LlmCarrier(StandInLibrary()).reset_prefix_cache()

    asyncio.run(run())


class _Hanging(StandInLlm):
    async def abort(self, request_id: str) -> None:
        self.aborted.append(request_id)
        await asyncio.Event().wait()


class _Dead(StandInLlm):
    async def abort(self, request_id: str) -> None:
        self.aborted.append(request_id)
        raise EngineDeadError


@pytest.mark.parametrize("kind", [_Hanging, _Dead])
def test_an_abort_that_hangs_or_fails_is_forgotten_with_its_engine(kind: type[StandInLlm]) -> None:
    async def act(scene: LlmScene) -> None:
        reports: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, report: reports.append(report))
        llm = scene.library.llm
        llm.__class__ = kind
        sink = RecordingSink()
        scene.engine.submit(scene.make_request("gone", max_tokens=4000), sink)
        await scene.until(lambda: sink.has_begun)
        scene.engine.abort("gone")
        await scene.until(lambda: bool(llm.aborted))
        llm.die()
        await scene.until(lambda: scene.engine.statistics().epoch == 2)
        await asyncio.sleep(0)
        gc.collect()  # a failure that nobody took is reported when its task goes
        assert not [task for task in asyncio.all_tasks() if task.get_name() == "abort in vLLM"]
        assert reports == []

    play(act)


@pytest.mark.parametrize("field", ["revision", "model_name"])
def test_another_word_for_the_weights_is_another_revision(field: str) -> None:
    digests = []

    async def act(scene: LlmScene) -> None:
        model = scene.engine.statistics().model
        assert model is not None
        digests.append(model.weights_digest)

    for word in ("one", "two"):
        play(act, **{field: word})
    assert digests[0] != digests[1]


class _DiesAtFirst(StandInLibrary):
    """Its first engine dies of the trial."""

    def sampling(self, fields: Any) -> Any:
        if len(self.started) == 1:
            self.llm.errored = True
        return super().sampling(fields)


def test_an_engine_that_dies_of_its_trial_is_followed_by_another() -> None:
    library = _DiesAtFirst()

    async def act(scene: LlmScene) -> None:
        assert scene.engine.is_ready

    play(act, library=library)
    assert len(library.started) == 2
