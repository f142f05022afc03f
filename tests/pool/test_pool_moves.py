"""A request whose engine is lost: it moves while nothing was sent, once, and otherwise fails once. Nothing is left."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.pool_scene import PoolScene
from tidegate.engine.port import DeltaSink, Engine
from tidegate.engines.pool.member_health import HealthRule
from tidegate.engines.pool.pool import PoolRule
from tidegate.errors import EngineLost, EngineRefused, EngineUnavailable, InternalError
from tidegate.inference.finish import EngineFinish
from tidegate.inference.request import InferenceRequest
from tidegate.testing.check_engine import RecordingSink
from tidegate.testing.engine_pair import EnginePair, simulated_core
from tidegate.testing.requests import seeded_request


def holder(scene: PoolScene) -> str:
    """Returns the one engine that has requests."""
    (name,) = [name for name, number in scene.requests().items() if number]
    return name


def test_a_request_without_output_is_answered_by_the_other_engine_as_if_nothing_had_happened() -> None:
    undisturbed = PoolScene(2)
    expected = undisturbed.submit("r", seed=7, max_tokens=20)
    undisturbed.run()
    scene = PoolScene(2)
    sink = scene.submit("r", seed=7, max_tokens=20)
    scene.pairs[holder(scene)].lose()
    assert not sink.has_begun
    scene.run()
    sink.check()
    assert sink.token_ids == expected.token_ids
    assert (sink.finishes, sink.num_prompt_tokens) == ({0: EngineFinish.LENGTH}, 20)
    scene.check_rest()


def test_a_request_with_output_fails_once_and_never_moves() -> None:
    scene = PoolScene(2)
    sink = scene.submit("r", max_tokens=50)
    while not sink.has_begun:
        scene.step()
    lost = holder(scene)
    scene.pairs[lost].lose()
    assert isinstance(sink.error, EngineLost)
    scene.run()
    sink.check()
    assert sum(one.num_moved for one in scene.pool.members()) == 0
    scene.check_rest()


def test_a_move_keeps_the_hold_and_the_choices_that_were_given_up() -> None:
    scene = PoolScene(2)
    sink = scene.submit("r", num_choices=3, max_tokens=9)
    scene.pool.hold("r", held=True)
    scene.pool.abort("r", 1)
    scene.pairs[holder(scene)].lose()
    for _ in range(20):
        scene.step()
    assert sink.finishes == {1: EngineFinish.ABORTED}
    assert not any(sink.token_ids), "it is held"
    scene.pool.hold("r", held=False)
    scene.run()
    assert sink.finishes == {0: EngineFinish.LENGTH, 1: EngineFinish.ABORTED, 2: EngineFinish.LENGTH}
    sink.check()
    scene.check_rest()


def test_who_was_given_up_is_not_moved() -> None:
    scene = PoolScene(2)
    sink = scene.submit("r")
    scene.pool.abort("r")
    scene.pairs[holder(scene)].lose()
    assert isinstance(sink.error, EngineLost)
    scene.check_rest()


@pytest.mark.parametrize(("max_moves", "num_tried"), [(0, 1), (1, 2), (2, 3), (9, 4)])
def test_a_request_moves_as_often_as_it_may_and_never_to_an_engine_that_lost_it(max_moves: int, num_tried: int) -> None:
    """Two deaths with it inside make it suspect: only where that is switched off are there more."""
    scene = PoolScene(4, PoolRule(max_moves=max_moves))
    for pair in scene.pairs.values():
        pair.engine._poison._max_suspects = 0
    sink, seen = scene.submit("r"), []
    while not sink.has_ended:
        seen.append(holder(scene))
        scene.pairs[seen[-1]].lose()
    assert len(seen) == len(set(seen)) == num_tried
    assert isinstance(sink.error, EngineLost)
    sink.check()
    scene.check_rest()


def test_a_request_that_kills_two_engines_is_refused_by_the_third() -> None:  # LIFE-2
    scene = PoolScene(3, PoolRule(max_moves=5))
    sink = scene.submit("r")
    for _ in range(2):
        scene.pairs[holder(scene)].lose()
    assert isinstance(sink.error, EngineRefused)
    assert [one.status.is_ready for one in scene.pool.members()].count(True) == 1
    other = scene.submit("other", max_tokens=3)
    scene.run()
    assert other.error is None
    scene.check_rest()


class BreakingEngine:
    """Takes requests and says that it is ready, whatever becomes of them: as one elsewhere whose death nobody saw."""

    def __init__(self, inner: Engine) -> None:
        self.sinks: list[DeltaSink] = []
        self.statistics = inner.statistics

    def submit(self, _request: InferenceRequest, sink: DeltaSink) -> None:
        self.sinks.append(sink)

    def abort(self, request_id: str, choice: int | None = None) -> None: ...

    def hold(self, request_id: str, *, held: bool) -> None: ...


def test_a_request_that_is_lost_twice_without_a_death_is_tried_nowhere_else() -> None:
    scene = PoolScene(0, PoolRule(max_moves=8))
    engines = [BreakingEngine(EnginePair(simulated_core, scene.clock).engine) for _ in range(4)]
    for name, engine in zip("abcd", engines, strict=True):
        scene.pool.join(name, engine)
    sink = scene.submit("r")
    for _ in range(2):
        assert not sink.has_ended
        (holding,) = [engine for engine in engines if engine.sinks]
        holding.sinks.pop().fail(EngineLost("The exchange broke off."))
    assert isinstance(sink.error, EngineLost)
    assert not any(engine.sinks for engine in engines)


def test_nobody_left_to_move_to_is_a_loss() -> None:
    scene = PoolScene(2)
    sinks = [scene.submit(f"r{i}") for i in range(4)]
    for pair in scene.pairs.values():
        pair.lose()
    for sink in sinks:
        assert isinstance(sink.error, EngineLost)
        sink.check()
    with pytest.raises(EngineUnavailable) as caught:
        scene.submit("late")
    assert 1 <= caught.value.retry_after_s <= 120
    scene.check_rest()


def test_what_an_earlier_engine_still_says_is_dropped_and_counted() -> None:
    scene = PoolScene(2)
    sink = scene.submit("r", max_tokens=4)
    first = holder(scene)
    attempt = scene.pool._placements["r"].attempt
    assert attempt is not None
    assert scene.pool.eject(first) == 1
    second = holder(scene)
    assert second != first
    attempt.fail(EngineLost("the word of an engine that it has left"))
    assert holder(scene) == second, "it is where it was"
    assert scene.pool.statistics().num_stale_outputs == 1
    before = scene.pool.statistics().num_stale_outputs
    scene.run()
    for _ in range(5):
        scene.step()
    sink.check()
    assert sink.finishes == {0: EngineFinish.LENGTH}
    assert scene.pool.statistics().num_stale_outputs > before, "the abort was answered"
    scene.check_rest()


def test_an_engine_that_goes_on_after_it_lost_a_request_does_not_get_that_one_again() -> None:
    scene = PoolScene(2)
    scene.submit("r")
    first, attempt = holder(scene), scene.pool._placements["r"].attempt
    assert attempt is not None
    attempt.fail(EngineLost("this one only"))
    assert holder(scene) != first


def test_an_engine_that_was_to_leave_is_gone_when_its_last_request_has_moved() -> None:
    scene = PoolScene(2)
    sink = scene.submit("r", max_tokens=4)
    first = holder(scene)
    scene.pool.leave(first)
    assert [one.name for one in scene.pool.members()] == ["a", "b"]
    scene.pairs[first].lose()
    assert [one.name for one in scene.pool.members()] == [name for name in "ab" if name != first]
    scene.run()
    assert sink.finishes == {0: EngineFinish.LENGTH}


class RaisingSink(RecordingSink):
    def deliver(self, delta: object) -> None:
        raise ZeroDivisionError(str(delta))


def test_a_sink_that_breaks_is_not_the_engines_fault() -> None:
    scene = PoolScene(2)
    sink, other = RaisingSink(), scene.submit("other", max_tokens=3)
    scene.pool.submit(seeded_request("broken", max_tokens=50), sink)
    scene.run()
    assert isinstance(sink.error, InternalError)
    assert other.error is None
    assert [one.num_lost for one in scene.pool.members()] == [0, 0]
    assert scene.owed() == {"a": 0, "b": 0}


def test_an_id_is_open_once() -> None:
    scene = PoolScene(2)
    scene.submit("r")
    with pytest.raises(InternalError):
        scene.submit("r")
    scene.run()
    scene.check_rest()
    scene.submit("r")


ACTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["submit", "abort", "abort choice", "hold", "step", "lose", "restart", "drain", "eject", "restore"]
        ),
        st.integers(0, 7),
    ),
    max_size=40,
)


class RandomRun:
    """A pool of three under random acts: request `r0` to `r7`, engine `a` to `c`."""

    def __init__(self) -> None:
        self.scene = PoolScene(3, PoolRule(health=HealthRule(first_wait_s=0.1)))
        self.sinks: list[RecordingSink] = []

    def act(self, word: str, which: int) -> None:
        pool, request_id, name = self.scene.pool, f"r{which}", "abc"[which % 3]
        pair = self.scene.pairs[name]
        acts: dict[str, Callable[[], object]] = {
            "submit": lambda: self.submit(request_id, which),
            "abort": lambda: pool.abort(request_id),
            "abort choice": lambda: pool.abort(request_id, which % 3),
            "hold": lambda: pool.hold(request_id, held=which % 2 == 0),
            "step": self.scene.step,
            "lose": pair.lose,
            "restart": pair.restart,
            "drain": lambda: pool.drain(name),
            "eject": lambda: pool.eject(name),
            "restore": lambda: pool.restore(name),
        }
        acts[word]()

    def submit(self, request_id: str, which: int) -> None:
        sink = RecordingSink(1 + which % 3)
        try:
            self.scene.pool.submit(seeded_request(request_id, num_choices=1 + which % 3, max_tokens=1 + which), sink)
        except (EngineUnavailable, EngineRefused, InternalError):
            return
        self.sinks.append(sink)


@given(ACTS)
def test_whatever_happens_every_request_ends_once_and_every_count_returns_to_nothing(
    acts: list[tuple[str, int]],
) -> None:
    run = RandomRun()
    for word, which in acts:
        run.scene.clock.advance(0.05)
        run.act(word, which)
    for which in range(8):
        run.act("hold", which)
        run.scene.pool.hold(f"r{which}", held=False)
    run.scene.run()
    for sink in run.sinks:
        assert sink.has_ended
        sink.check()
    run.scene.check_rest()
