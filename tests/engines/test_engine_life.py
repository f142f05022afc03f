"""The rounds that every watch goes, in virtual time: when a life begins, and what those are told who wait."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tidegate.engine.messages import EngineReady
from tidegate.engines.life.backoff import RETRY_MARGIN_S, Backoff
from tidegate.engines.life.engine_life import FAULT_WAIT_S, EngineLife
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.life.wait_event import wait_event
from tidegate.inference.model_info import ModelInfo
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.virtual_loop import VirtualLoop

HOPELESS = EngineStartFailed("hopeless")
BROKEN = RuntimeError("broken")


@dataclass(frozen=True)
class Stage:
    """One life: starts for `start_s`, serves for `serve_s` (None: never), and then ends so."""

    then: float | Exception
    start_s: float = 1.0
    serve_s: float | None = None


class FakeEngine:
    def __init__(self) -> None:
        self.is_ready = False
        self.retry_after_s = 0.0
        self.on_ready: list[Callable[[EngineReady], None]] = []
        self.on_lost: list[Callable[[str], None]] = []

    def change(self, *, is_ready: bool) -> None:
        self.is_ready = is_ready
        if is_ready:
            for greet in self.on_ready:
                greet(EngineReady(1, ModelInfo(2, 16, (1,), 1, 1, 16, "", "a build")))
        else:
            for tell in self.on_lost:
                tell("gone")


class Scene:
    """An engine that lives as `stages` say, and for ever when they are used up."""

    def __init__(self, *stages: Stage, linger_s: float = 0.0) -> None:
        self.engine = FakeEngine()
        self.began_at: list[float] = []
        self.num_cut = 0
        self.has_lingered = False
        self.reports: list[dict[str, Any]] = []
        self.life = EngineLife("watch", self.engine, self._live)
        self._stages: Iterator[Stage] = iter(stages)
        self._linger_s = linger_s

    async def _live(self) -> float | EngineStartFailed:
        self.began_at.append(asyncio.get_running_loop().time())
        stage = next(self._stages, Stage(0.0, serve_s=1e9))
        try:
            await asyncio.sleep(stage.start_s)
            if stage.serve_s is not None:
                self.engine.change(is_ready=True)
                await asyncio.sleep(stage.serve_s)
        except asyncio.CancelledError:
            self.num_cut += 1
            await asyncio.sleep(self._linger_s)
            self.has_lingered = True
            raise
        finally:
            self.engine.change(is_ready=False)
        if isinstance(stage.then, Exception) and stage.then is not HOPELESS:
            raise stage.then
        assert isinstance(stage.then, float | EngineStartFailed)
        return stage.then

    async def told(self) -> str:
        """Returns what somebody is told who waits for the engine."""
        try:
            await self.life.wait_ready()
        except EngineStartFailed as failure:
            return str(failure)
        return "ready"


def play(act: Callable[[Scene], Awaitable[None]], *stages: Stage, starts: bool = True, **facts: Any) -> Scene:
    async def main() -> Scene:
        scene = Scene(*stages, **facts)
        asyncio.get_running_loop().set_exception_handler(lambda _, context: scene.reports.append(context))
        if starts:
            scene.life.start()
        await act(scene)
        await scene.life.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return scene

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(ManualClock(now=0.0))) as runner:
        return runner.run(main())


SERVED_FIRST = Stage(5.0, serve_s=2.0)
ROUNDS: dict[str, tuple[tuple[Stage, ...], list[float], list[str]]] = {
    "a life, its wait, the next life": ((Stage(2.0), Stage(4.0)), [0, 3, 8], ["ready"]),
    "what was given up begins no life": ((Stage(2.0), Stage(HOPELESS)), [0, 3], ["hopeless"]),
    "a fault of the watch before it ever served": ((Stage(BROKEN),), [0], ["The watch failed: RuntimeError: broken."]),
    "a fault of the watch later on": ((SERVED_FIRST, Stage(BROKEN)), [0, 8, 9 + FAULT_WAIT_S], ["ready", "ready"]),
    "no wait at all": ((Stage(0.0), Stage(0.0)), [0, 1, 2], ["ready"]),
}


@pytest.mark.parametrize("case", ROUNDS.values(), ids=ROUNDS)
def test_the_rounds_of_a_life(case: tuple[tuple[Stage, ...], list[float], list[str]]) -> None:
    stages, began_at, told = case

    async def act(scene: Scene) -> None:
        for words in told:
            assert await asyncio.gather(*[scene.told() for _ in range(3)]) == [words] * 3
            await asyncio.sleep(30.0)
        assert scene.began_at == began_at

    scene = play(act, *stages)
    faults = [stage for stage in stages if stage.then is BROKEN]
    assert [report["exception"] for report in scene.reports] == [BROKEN] * len(faults)


def test_a_refused_caller_is_told_to_come_after_the_next_attempt() -> None:
    async def act(scene: Scene) -> None:
        await asyncio.sleep(1.5)
        assert scene.engine.retry_after_s == 7.0 + RETRY_MARGIN_S

    play(act, Stage(7.0))


@pytest.mark.parametrize("at", [0.5, 50.0], ids=["in the life before", "in the wait"])
def test_hurry_cuts_the_wait_short_once(at: float) -> None:
    async def act(scene: Scene) -> None:
        await asyncio.sleep(at)
        scene.life.hurry()
        assert await scene.told() == "ready"
        assert scene.began_at == [0, max(1.0, at), max(1.0, at) + 101.0]

    play(act, Stage(100.0), Stage(100.0))


def test_only_what_was_given_up_is_taken_up_again() -> None:
    async def act(scene: Scene) -> None:
        assert not scene.life.take_up()
        scene.life.start()
        assert not scene.life.take_up()
        assert await scene.told() == "hopeless"
        assert scene.life.take_up()
        assert not scene.life.take_up()
        assert await scene.told() == "ready"
        await scene.life.aclose()
        assert not scene.life.take_up()

    play(act, Stage(HOPELESS), starts=False)


def test_who_waits_is_told_of_a_failure_although_the_lives_go_on_and_nobody_after_the_engine_was_ready() -> None:
    async def act(scene: Scene) -> None:
        scene.life.fail(EngineStartFailed("not as things are"))
        assert await scene.told() == "not as things are"
        await asyncio.sleep(5.0)
        assert scene.engine.is_ready
        scene.engine.change(is_ready=False)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await scene.told()

    play(act, Stage(1.0))


def test_news_are_readiness_loss_failure_and_the_end() -> None:
    async def act(scene: Scene) -> None:
        loop, instants = asyncio.get_running_loop(), []
        for _ in range(3):
            await scene.life.wait_news()
            instants.append(loop.time())
        assert instants == [1, 3, 9]  # ready, lost, given up
        waiting = asyncio.create_task(scene.life.wait_news())
        await asyncio.sleep(1.0)
        scene.life.end()
        await waiting

    play(act, SERVED_FIRST, Stage(HOPELESS))


def test_an_end_lets_the_present_life_go_on_and_begins_no_other() -> None:
    async def act(scene: Scene) -> None:
        waiting = asyncio.create_task(scene.told())
        await asyncio.sleep(0.5)
        scene.life.end()
        assert "this server ends" in await waiting
        await scene.life.wait_end()
        assert asyncio.get_running_loop().time() == 1.0
        assert (scene.began_at, scene.num_cut) == ([0], 0)

    play(act, Stage(100.0))


@pytest.mark.parametrize("starts", [True, False], ids=["in a life", "before the first"])
def test_a_close_cuts_the_life_once_and_waits_for_what_it_leaves(starts: bool) -> None:
    async def act(scene: Scene) -> None:
        await asyncio.sleep(0.5)
        first = asyncio.create_task(scene.life.aclose())
        await asyncio.sleep(1.0)  # what the life leaves takes its time
        await scene.life.aclose()
        await first
        assert (scene.num_cut, scene.has_lingered) == ((1, True) if starts else (0, False))
        assert "this server ends" in await scene.told()

    play(act, Stage(100.0), starts=starts, linger_s=3.0)


def test_waits_double_up_to_the_cap_and_stay_finite() -> None:
    backoff = Backoff(0.25, 3.0)
    assert [backoff.next_wait_s() for _ in range(5)] == [0.25, 0.5, 1.0, 2.0, 3.0]
    assert backoff.num_in_row == 5
    assert [backoff.next_wait_s() for _ in range(5000)][-1] == 3.0
    backoff.reset()
    assert (backoff.num_in_row, backoff.next_wait_s()) == (0, 0.25)
    assert Backoff(8.0, 3.0).next_wait_s() == 3.0


def test_a_wait_for_an_event_says_whether_it_came() -> None:
    async def main() -> None:
        event = asyncio.Event()
        assert not await wait_event(event, 1.0)
        asyncio.get_running_loop().call_later(1.0, event.set)
        assert await wait_event(event, 2.0)
        assert asyncio.get_running_loop().time() == 2.0
        assert await wait_event(event, 0.0)

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(ManualClock(now=0.0))) as runner:
        runner.run(main())
