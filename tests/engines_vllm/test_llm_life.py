"""vLLM's start, death, hang and end, as its watch sees them, over a stand-in for its library."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.llm_scene import PLAN, QUICK, LlmScene
from harness.llm_stand_in import (
    EngineDeadError,
    EngineGenerateError,
    QueueOverflowError,
    StandInLibrary,
    VLLMClientError,
)
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.remote.remote_grammar import GrammarWriter
from tidegate.engines.vllm import llm_carrier, watch
from tidegate.engines.vllm.engine_arguments import UnusableOptions
from tidegate.errors import EngineLost, EngineRefused, EngineUnavailable, InternalError, InvalidValue
from tidegate.testing.check_engine import RecordingSink


def play(act: Callable[[LlmScene], Awaitable[None]], **scene: Any) -> None:
    async def run() -> None:
        async with LlmScene(**scene) as entered:
            await act(entered)

    asyncio.run(run())


def test_an_idle_death_is_noticed_and_the_next_engine_serves_under_the_next_epoch() -> None:
    async def act(scene: LlmScene) -> None:
        scene.library.llm.die()
        await scene.until(lambda: scene.engine.statistics().epoch == 2 and scene.engine.is_ready)
        assert scene.library.started[0].is_shut_down
        sink = RecordingSink()
        scene.engine.submit(scene.make_request("after"), sink)
        await scene.until(lambda: sink.has_ended)
        assert sink.error is None
        assert scene.engine.statistics().num_restarts == 1

    play(act)


def test_accounts_are_at_rest_after_a_death() -> None:
    async def act(scene: LlmScene) -> None:
        sinks = [RecordingSink() for _ in range(3)]
        for i, sink in enumerate(sinks):
            scene.engine.submit(scene.make_request(f"lost-{i}", max_tokens=500), sink)
        await scene.until(lambda: all(sink.has_begun for sink in sinks))
        assert scene.engine.statistics().gauges.blocks_used > 0
        scene.library.llm.die()
        await scene.until(lambda: all(sink.has_ended for sink in sinks))
        gauges = scene.engine.statistics().gauges
        assert (gauges.num_waiting, gauges.num_running, gauges.blocks_used) == (0, 0, 0)
        assert all(isinstance(sink.error, EngineLost) for sink in sinks)

    play(act)


def test_an_engine_without_steps_is_ended_and_started_anew() -> None:
    async def act(scene: LlmScene) -> None:
        sink = RecordingSink()
        scene.library.llm.is_stuck = True
        scene.engine.submit(scene.make_request("stuck"), sink)
        await scene.until(lambda: sink.has_ended and scene.engine.statistics().epoch == 2)
        assert isinstance(sink.error, EngineLost)
        assert scene.engine.statistics().num_stalls == 1

    play(act, settings=replace(QUICK, stall_timeout_s=0.2))


def test_a_restart_that_was_asked_for_fails_what_is_open_and_waits_for_nothing() -> None:
    async def act(scene: LlmScene) -> None:
        sink = RecordingSink()
        scene.engine.submit(scene.make_request("open", max_tokens=4000), sink)
        await scene.until(lambda: sink.has_begun)
        await scene.watch.restart()
        await scene.until(lambda: scene.engine.statistics().epoch == 2 and scene.engine.is_ready)
        sink.check()
        assert isinstance(sink.error, EngineLost)

    play(act)


HOPELESS: dict[str, tuple[Callable[[StandInLibrary], None], dict[str, Any], str]] = {
    "options that vLLM does not take": (
        lambda library: setattr(library, "configure_fault", ValueError("no such device")),
        {},
        "no such device",
    ),
    "an option that vLLM does not know": (
        lambda library: setattr(library, "configure_fault", UnusableOptions("engine.options: no argument dtyp")),
        {},
        r"^vLLM did not start: engine\.options: no argument dtyp\.$",
    ),
    "a context that is too long": (lambda library: None, {"max_model_len": 5000}, "4096 tokens"),
    "another tokenizer": (lambda library: None, {"probes": (("ab", (1, 2)),)}, "token 0"),
}


@pytest.mark.parametrize("case", HOPELESS.values(), ids=HOPELESS)
def test_what_can_never_be_served_is_given_up_at_once_with_the_reason(case: tuple[Any, dict[str, Any], str]) -> None:
    spoil, facts, words = case
    library = StandInLibrary()
    spoil(library)

    async def act(scene: LlmScene) -> None:
        with pytest.raises(EngineStartFailed, match=words):
            await scene.watch.wait_ready()
        assert "given up" in (scene.engine.statistics().condition or "")

    play(act, library=library, waits=False, **facts)
    assert len(library.started) <= 1


def test_a_start_that_fails_is_tried_again() -> None:
    library = StandInLibrary()
    library.start_faults = [RuntimeError("no memory"), RuntimeError("no memory")]

    async def act(scene: LlmScene) -> None:
        await scene.watch.wait_ready()
        assert len(library.started) == 1

    play(act, library=library, waits=False)


def test_starts_that_fail_again_and_again_are_given_up_and_a_restart_takes_them_up() -> None:
    library = StandInLibrary()
    library.start_faults = [RuntimeError("no memory")] * 3

    async def act(scene: LlmScene) -> None:
        with pytest.raises(EngineStartFailed, match="no memory"):
            await scene.watch.wait_ready()
        await scene.watch.restart()
        await scene.watch.wait_ready()
        assert scene.engine.is_ready

    play(act, library=library, waits=False)


def test_an_end_during_a_start_waits_for_it_and_ends_what_it_made() -> None:
    async def run() -> None:
        library = StandInLibrary()
        async with LlmScene(library, waits=False):
            pass
        assert all(llm.is_shut_down for llm in library.started)

    asyncio.run(run())


def test_a_start_that_hangs_is_left_alone_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "ABANDON_S", 0.15)
    library = StandInLibrary()
    library.may_start.clear()

    async def run() -> None:
        async with LlmScene(library, waits=False) as scene:
            await scene.until(library.is_starting.is_set)
        assert library.num_kills > 1

    asyncio.run(run())
    library.may_start.set()


@pytest.mark.parametrize("lacking", ["refuses_grammars", "has_old_llguidance", None])
def test_constraints_are_served_where_vllm_keeps_them_and_an_operator_is_told_where_not(lacking: str | None) -> None:
    library = StandInLibrary()
    if lacking is not None:
        setattr(library, lacking, True)

    async def act(scene: LlmScene) -> None:
        model = scene.engine.statistics().model
        assert model is not None
        assert model.grammar_backend == ("guidance" if lacking is None else None)
        assert [note.partition(":")[0] for note in scene.notes] == ["no structured output"] * (lacking is not None)

    play(act, library=library, grammars=GrammarWriter(frozenset({256}), lambda token_id: bytes([token_id])))


FAULTS: dict[str, tuple[Exception, type[Exception]]] = {
    "dead": (EngineDeadError(), EngineLost),
    "a field": (VLLMClientError("seed"), InvalidValue),
    "a full queue": (QueueOverflowError(), EngineUnavailable),
    "this request alone": (EngineGenerateError(), EngineRefused),
    "anything else": (KeyError("x"), InternalError),
}


@pytest.mark.parametrize("num_outputs", [0, 2], ids=["before any output", "after two"])
@pytest.mark.parametrize("case", FAULTS.values(), ids=FAULTS)
def test_what_vllm_raises_ends_that_request_once(case: tuple[Exception, type[Exception]], num_outputs: int) -> None:
    raised, told = case

    async def act(scene: LlmScene) -> None:
        scene.library.llm.faults.append((num_outputs, raised))
        sink, other = RecordingSink(), RecordingSink()
        scene.engine.submit(scene.make_request("faulty", max_tokens=50), sink)
        scene.engine.submit(scene.make_request("other", max_tokens=50), other)
        await scene.until(lambda: sink.has_ended and other.has_ended)
        assert type(sink.error) is told
        assert other.error is None
        assert scene.reports

    play(act)


def test_an_abort_cuts_the_run_and_tells_vllm_by_its_name() -> None:
    async def act(scene: LlmScene) -> None:
        sink = RecordingSink(num_choices=2)
        scene.engine.submit(scene.make_request("gone", num_choices=2, max_tokens=4000), sink)
        await scene.until(lambda: all(sink.token_ids))
        scene.library.llm.is_stuck = True  # nothing ends by itself any more
        scene.engine.abort("gone")
        counts = [len(ids) for ids in sink.token_ids]
        await scene.until(lambda: scene.library.llm.num_live == 0)
        await scene.until(lambda: len(scene.library.llm.aborted) == 2)
        assert [len(ids) for ids in sink.token_ids] == counts
        assert scene.library.llm.aborted == ["gone-0", "gone-1"]

    play(act)


def test_choices_beyond_the_bound_are_refused_before_vllm_hears_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_carrier, "MAX_RUNS", 3)

    async def act(scene: LlmScene) -> None:
        with pytest.raises(EngineUnavailable, match="does not keep up"):
            scene.engine.submit(scene.make_request("many", num_choices=4), RecordingSink())

    play(act)


def test_a_held_request_gets_what_came_meanwhile_in_one_piece() -> None:
    async def act(scene: LlmScene) -> None:
        sink = RecordingSink()
        scene.engine.submit(scene.make_request("held", max_tokens=40), sink)
        await scene.until(lambda: sink.has_begun)
        scene.engine.hold("held", held=True)
        before = len(sink.token_ids[0])
        other = RecordingSink()
        scene.engine.submit(scene.make_request("other", max_tokens=60), other)
        await scene.until(lambda: other.has_ended)
        assert len(sink.token_ids[0]) == before
        scene.engine.hold("held", held=False)
        await scene.until(lambda: sink.has_ended)
        assert len(sink.token_ids[0]) == 40

    play(act)


def test_vllm_is_started_with_our_arguments_around_the_operators() -> None:
    async def act(scene: LlmScene) -> None:
        config = scene.library.llm.config
        assert config["tensor_parallel_size"] == 2
        assert config["structured_outputs_config"] == {"backend": "guidance"}
        assert config["max_logprobs"] == 21

    play(act, plan=replace(PLAN, options={"tensor_parallel_size": 2}))
