"""Prompts that are only read, from the server half to the core and back: answers, aborts, losses."""

import numpy as np

from tidegate.backends.simulated_pooling import SimulatedPooling
from tidegate.errors import EngineLost
from tidegate.inference.finish import EngineFinish
from tidegate.inference.pooling import PoolingTask
from tidegate.inference.request import InferenceRequest
from tidegate.inference.script import Script
from tidegate.testing.check_engine import RecordingSink
from tidegate.testing.engine_pair import EnginePair, simulated_core
from tidegate.testing.manual_clock import ManualClock
from tidegate.testing.requests import make_request


def make_pair() -> EnginePair:
    return EnginePair(simulated_core, ManualClock())


def read(request_id: str, text: str = "hello", *, delay_s: float = 0.0) -> InferenceRequest:
    script = Script((), queue_delay_s=delay_s) if delay_s else None
    return make_request(request_id, text, max_tokens=0, pooling=PoolingTask.EMBED, script=script)


def submit(pair: EnginePair, request: InferenceRequest) -> RecordingSink:
    sink = RecordingSink()
    pair.engine.submit(request, sink)
    return sink


def test_a_vector_comes_back_as_little_endian_floats() -> None:
    pair = make_pair()
    sink = submit(pair, read("a"))
    pair.run()
    sink.check()
    assert (sink.finishes, sink.num_prompt_tokens, sink.token_ids) == ({0: EngineFinish.POOLED}, 5, [[]])
    assert sink.pooled is not None
    expected = SimulatedPooling().pool([list(b"hello")], PoolingTask.EMBED)[0]
    assert np.array_equal(np.frombuffer(sink.pooled, "<f4"), expected)
    assert pair.engine.gauges.num_pooled == 1
    assert pair.engine.num_open == 0


def test_the_greeting_says_how_the_model_pools() -> None:
    model = make_pair().engine.statistics().model
    assert model is not None
    assert model.generates
    assert model.pooling == SimulatedPooling().caps.info


def test_an_abort_in_the_queue_is_told_once_and_others_go_on() -> None:
    pair = make_pair()
    first, second = submit(pair, read("a", delay_s=5.0)), submit(pair, read("b"))
    pair.turn()
    assert pair.core.statistics().num_waiting == 2
    pair.engine.abort("a")
    pair.run()
    assert pair.core.statistics().num_pooled == 1
    assert second.finishes == {0: EngineFinish.POOLED}
    assert first.finishes in ({}, {0: EngineFinish.ABORTED})
    assert pair.engine.num_open == 0
    first.check()


def test_what_is_live_when_the_engine_goes_fails_once_and_the_next_engine_serves() -> None:
    pair = make_pair()
    sinks = [submit(pair, read(f"r{index}", delay_s=9.0)) for index in range(3)]
    pair.turn()
    pair.restart()
    assert all(isinstance(sink.error, EngineLost) for sink in sinks)
    again = submit(pair, read("again"))
    pair.run()
    assert again.finishes == {0: EngineFinish.POOLED}
    assert [sink.finishes for sink in sinks] == [{}, {}, {}]
    for sink in (*sinks, again):
        sink.check()


def test_a_client_that_vanishes_leaves_no_prompt_behind() -> None:
    pair = make_pair()
    submit(pair, read("a", delay_s=9.0))
    pair.turn()
    core = pair.core
    pair.lose()
    core.step(pair.clock.now())
    assert core.statistics().num_waiting == 0
    assert core.next_wake_at(pair.clock.now()) is None
