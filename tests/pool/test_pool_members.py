"""Who of a pool gets requests: drained, ejected, on trial, of another revision; and what the pool says of itself."""

import pytest

from harness.pool_scene import PoolScene
from tidegate.engine.port import Engine
from tidegate.engines.pool.member_health import HealthRule
from tidegate.engines.pool.pool import EnginePool, PoolRule
from tidegate.engines.pool.prefix_hash import BLOCK_TOKENS
from tidegate.errors import EngineLost, EngineUnavailable
from tidegate.testing.check_engine import RecordingSink
from tidegate.testing.engine_pair import EnginePair, simulated_core
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.requests import seeded_request

QUICK = HealthRule(num_faults=2, first_wait_s=1.0, max_wait_s=4.0)
ROLLING = PoolRule(health=QUICK, is_rolling=True)


def test_requests_are_spread_by_what_they_weigh() -> None:
    scene = PoolScene(2)
    scene.submit("long", max_tokens=400)
    for i in range(4):
        scene.submit(f"short-{i}", max_tokens=60)
    assert sorted(scene.requests().values()) == [1, 4]
    owed = sum(one.num_tokens for one in scene.pool.members())
    for _ in range(8):
        scene.step()
    written = sum(one.status.gauges.num_output_tokens for one in scene.pool.members())
    assert written > 0
    assert sum(one.num_tokens for one in scene.pool.members()) <= owed - written, "what was written is owed no more"
    for i in range(4):
        scene.submit(f"more-{i}", max_tokens=60)
    assert sorted(scene.requests().values()) == [2, 7], "320 owed there by now"
    scene.run()
    scene.check_rest()


def test_a_beginning_goes_where_it_was_read_and_is_forgotten_with_the_engine() -> None:
    scene = PoolScene(3)
    scene.submit("first", num_prompt=200)
    home = next(name for name, number in scene.requests().items() if number)
    scene.run()
    for i in range(5):
        scene.submit(f"again-{i}", num_prompt=200)
        assert scene.requests()[home] == 1
        scene.run()
    member = next(one for one in scene.pool.members() if one.name == home)
    assert (member.num_prompt_tokens, member.num_matched_tokens) == (1200, 5 * 192)
    model, known = scene.pairs[home].model, scene.pool.member(home).prefixes
    known.insert([i.to_bytes(2) for i in range(1000)])
    assert len(known) == model.num_blocks * model.block_tokens // BLOCK_TOKENS, "as much as its cache holds"
    scene.pairs[home].restart()
    scene.pool.members()
    assert len(scene.pool.member(home).prefixes) == 0


def test_a_drained_engine_finishes_what_it_has_and_gets_nothing_until_it_is_restored() -> None:
    scene = PoolScene(2)
    sinks = [scene.submit(f"r{i}", max_tokens=30) for i in range(4)]
    scene.pool.drain("a")
    for i in range(4):
        scene.submit(f"more-{i}", max_tokens=5)
    assert scene.requests() == {"a": 2, "b": 6}
    scene.run()
    assert all(sink.error is None for sink in sinks)
    assert scene.state("a") == "draining"
    assert scene.pool.statistics().condition == "1 of 2 engines is ready; a: taken out by an operator, 0 requests left"
    scene.pool.drain("b")
    with pytest.raises(EngineUnavailable, match="taken out"):
        scene.submit("nobody")
    assert not scene.pool.statistics().is_ready
    scene.pool.restore("a")
    assert scene.state("a") == "probing"
    scene.submit("trial")
    scene.run()
    assert scene.state("a") == "ready"
    scene.check_rest()


def test_a_retiring_engine_finishes_gets_nothing_and_may_be_kept() -> None:
    scene = PoolScene(2)
    sinks = [scene.submit(f"r{i}", max_tokens=30) for i in range(4)]
    scene.pool.retire("a")
    for i in range(4):
        scene.submit(f"more-{i}", max_tokens=5)
    assert scene.requests() == {"a": 2, "b": 6}
    assert scene.pool.statistics().condition == "1 of 2 engines is ready; a: retiring, 2 requests left"
    scene.pool.drain("a")
    assert scene.state("a") == "retiring", "to be drained as well changes nothing"
    scene.run()
    assert all(sink.error is None for sink in sinks)
    assert (scene.state("a"), scene.requests()["a"]) == ("retiring", 0), "whoever asked for it ends it"
    scene.pool.restore("a")
    scene.submit("trial")
    scene.run()
    assert scene.state("a") == "ready"
    scene.pool.retire("a")
    assert scene.pool.eject("a") == 0
    scene.pool.leave("a")
    assert [one.name for one in scene.pool.members()] == ["b"]
    scene.check_rest()


def test_an_ejected_engine_loses_what_it_has() -> None:
    scene = PoolScene(2)
    quiet, begun = RecordingSink(), RecordingSink()
    scene.pool.drain("b")
    scene.pool.submit(seeded_request("begun", max_tokens=50), begun)
    while not begun.has_begun:
        scene.step()
    scene.pool.submit(seeded_request("quiet", max_tokens=5), quiet)
    scene.pool.restore("b")
    assert scene.pool.eject("a") == 2
    assert isinstance(begun.error, EngineLost)
    assert scene.requests() == {"a": 0, "b": 1}
    scene.step()
    assert scene.pairs["a"].engine.num_open == 0, "the engine works on nothing that nobody waits for"
    scene.run()
    assert quiet.error is None
    assert scene.state("a") == "draining"
    scene.check_rest()


def test_an_engine_that_died_comes_back_on_trial_after_a_wait() -> None:
    scene = PoolScene(2, PoolRule(health=QUICK))
    scene.pairs["a"].lose()
    assert scene.state("a") == "ejected"
    scene.pairs["a"].start()
    scene.pairs["a"].connect()
    for i in range(3):
        scene.submit(f"r{i}")
    assert scene.requests() == {"a": 0, "b": 3}, "its wait is not over"
    scene.clock.advance(1.0)
    for i in range(3):
        scene.submit(f"t{i}")
    assert scene.requests() == {"a": 1, "b": 5}, "one request at a time"
    scene.run()
    assert scene.state("a") == "ready"
    scene.check_rest()


def test_when_nobody_else_is_there_an_ejected_engine_is_better_than_a_refusal() -> None:
    scene = PoolScene(1, PoolRule(health=QUICK))
    scene.pairs["a"].restart()
    assert scene.state("a") == "ready", "it was never seen to be gone"
    scene.pairs["a"].lose()
    assert scene.state("a") == "ejected"
    scene.pairs["a"].start()
    scene.pairs["a"].connect()
    assert scene.pool.statistics().is_ready
    for i in range(5):
        scene.submit(f"r{i}")
    assert scene.requests() == {"a": 5}
    scene.run()
    scene.check_rest()


class RefusingEngine:
    """Says that it is ready, and takes nothing while `is_refusing`."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self.is_refusing = True
        self.statistics = inner.statistics
        self.abort = inner.abort
        self.hold = inner.hold

    def submit(self, request: object, sink: object) -> None:
        if self.is_refusing:
            raise EngineUnavailable("The engine does not keep up.")
        self._inner.submit(request, sink)  # type: ignore[arg-type]


def test_an_engine_that_refuses_though_it_says_that_it_is_ready_is_ejected() -> None:
    clock = ManualClock()
    pairs = [EnginePair(simulated_core, clock) for _ in range(2)]
    refusing = RefusingEngine(pairs[0].engine)
    pool = EnginePool(PoolRule(health=QUICK), clock.now)
    pool.join("a", refusing)  # type: ignore[arg-type]
    pool.join("b", pairs[1].engine)
    for i in range(6):
        pool.submit(seeded_request(f"r{i}"), RecordingSink())
    by_name = {one.name: one for one in pool.members()}
    assert (by_name["a"].state.value, by_name["a"].num_lost, by_name["a"].num_requests) == ("ejected", 2, 0)
    assert by_name["b"].num_requests == 6
    assert by_name["a"].out_for_s == 1.0
    assert pool.statistics().condition == "2 of 2 engines are ready; a: ejected: The engine does not keep up."
    clock.advance(1.0)
    refusing.is_refusing = False
    pool.submit(seeded_request("trial"), RecordingSink())
    assert next(one for one in pool.members() if one.name == "a").num_requests == 1


def test_rows_and_blocks_are_those_of_the_engines_that_get_requests() -> None:
    scene = PoolScene(3, PoolRule(health=QUICK))
    one = scene.pairs["a"].model

    def room() -> tuple[int, int]:
        model = scene.pool.statistics().model
        assert model is not None
        return model.max_sequences, model.num_blocks

    assert room() == (3 * one.max_sequences, 3 * one.num_blocks)
    scene.pairs["a"].lose()
    assert room() == (2 * one.max_sequences, 2 * one.num_blocks)
    scene.pairs["a"].start()
    scene.pairs["a"].connect()
    scene.clock.advance(1.0)
    assert room() == (2 * one.max_sequences + 1, 3 * one.num_blocks), "one row of an engine on trial"
    for pair in scene.pairs.values():
        pair.lose()
    assert room() == (3 * one.max_sequences, 3 * one.num_blocks), "what waits, waits for their return"


def test_counts_of_a_moment_are_of_ready_engines_and_totals_of_all() -> None:
    scene = PoolScene(2)
    sinks = [scene.submit(f"r{i}", max_tokens=500) for i in range(4)]
    while not all(sink.has_begun for sink in sinks):
        scene.step()
    before = scene.pool.statistics().gauges
    assert before.num_running == 4
    scene.pairs["a"].lose()
    after = scene.pool.statistics().gauges
    assert after.num_running == 2
    assert after.num_output_tokens == before.num_output_tokens


def test_another_revision_is_left_out_and_said() -> None:
    scene = PoolScene(2, others="b")
    assert [scene.state("a"), scene.state("b")] == ["ready", "starting"]
    conflict = scene.pool.conflict()
    assert conflict is not None
    assert conflict.startswith("Engine b serves another revision than the rest of its pool: they differ in weights (")
    assert "pool.rolling" in conflict
    for i in range(3):
        scene.submit(f"r{i}")
    assert scene.requests() == {"a": 3, "b": 0}
    scene.pairs["a"].lose()
    assert scene.pool.conflict() is None, "nobody is left of the first revision"
    scene.submit("next")
    assert scene.requests() == {"a": 0, "b": 1}


def test_an_engine_of_another_revision_serves_where_those_of_the_first_were_taken_out() -> None:
    scene = PoolScene(2, others="b")
    scene.pool.drain("a")
    scene.submit("r")
    assert scene.requests() == {"a": 0, "b": 1}


def test_who_is_refused_is_told_the_time_of_the_engine_that_comes_first() -> None:
    scene = PoolScene(2)
    for name, wait_s in (("a", 9.0), ("b", 4.0)):
        scene.pairs[name].lose()
        scene.pairs[name].engine.retry_after_s = wait_s
    with pytest.raises(EngineUnavailable) as raised:
        scene.submit("r")
    assert raised.value.retry_after_s == 4


def test_while_rolling_a_call_keeps_to_one_revision_and_is_told_which() -> None:
    scene = PoolScene(4, ROLLING, others="cd")
    assert scene.pool.conflict() is None
    lane = scene.pool.choose_lane()
    assert lane.model is not None
    old = scene.pairs["a"].model.weights_digest
    names = "ab" if lane.model.weights_digest == old else "cd"
    for i in range(6):
        lane.engine.submit(seeded_request(f"r{i}", max_tokens=30), RecordingSink())
    assert all(bool(number) == (name in names) for name, number in scene.requests().items())
    assert lane.model.max_sequences == 2 * scene.pairs["a"].model.max_sequences
    other = scene.pool.choose_lane()
    assert other.model is not None
    assert other.model.weights_digest != lane.model.weights_digest, "the one with more room"
    lane.engine.hold("r0", held=True)
    lane.engine.hold("r0", held=False)
    lane.engine.abort("r0")
    assert lane.engine.statistics().is_ready
    scene.run()
    scene.check_rest()


def test_while_rolling_a_call_keeps_to_one_revision_even_where_nobody_is_trusted() -> None:
    scene = PoolScene(2, ROLLING, others="b")
    for pair in scene.pairs.values():
        pair.lose()
    scene.pool.members()
    for pair in scene.pairs.values():
        pair.start()
        pair.connect()
    assert {scene.state("a"), scene.state("b")} == {"ejected"}
    lane = scene.pool.choose_lane()
    assert lane.model is not None
    assert lane.model.max_sequences == scene.pairs["a"].model.max_sequences, "of one engine, and not of both"
    assert lane.engine is not scene.pool


def test_a_request_never_moves_to_another_revision() -> None:
    scene = PoolScene(2, ROLLING, others="b")
    sink = scene.submit("r")
    name = next(name for name, number in scene.requests().items() if number)
    scene.pairs[name].lose()
    assert isinstance(sink.error, EngineLost)
    scene.check_rest()


def test_engines_join_and_leave_under_load() -> None:
    scene = PoolScene(2)
    sinks = [scene.submit(f"r{i}", max_tokens=20) for i in range(4)]
    with pytest.raises(ValueError, match="already"):
        scene.pool.join("a", scene.pairs["a"].engine)
    scene.pool.leave("a")
    scene.submit("more")
    assert scene.requests() == {"a": 2, "b": 3}
    scene.pairs["c"] = EnginePair(simulated_core, scene.clock)
    scene.pool.join("c", scene.pairs["c"].engine)
    scene.submit("new")
    assert scene.requests()["c"] == 1
    scene.run()
    assert all(sink.error is None for sink in sinks)
    assert [one.name for one in scene.pool.members()] == ["b", "c"]
    scene.pool.leave("b")
    assert [one.name for one in scene.pool.members()] == ["c"]
    scene.check_rest()


def test_an_empty_pool_refuses() -> None:
    pool = EnginePool(PoolRule(), ManualClock().now)
    status = pool.statistics()
    assert (status.is_ready, status.model, pool.choose_lane().model) == (False, None, None)
    with pytest.raises(EngineUnavailable):
        pool.submit(seeded_request("r"), RecordingSink())


def test_a_senseless_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="max_moves"):
        PoolRule(max_moves=-1)
