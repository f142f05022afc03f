"""LocalEngine and EngineChannel against a real core, by hand: the fence, losses, slices, coalescing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.engine.framing import encode_frame
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import EngineFault, EngineReady, Pong, StepOutputs
from tidegate.engines.local.channel import SLICE_DELTAS
from tidegate.errors import EngineLost, EngineRefused, EngineUnavailable, InternalError, ServeError
from tidegate.inference.finish import EngineFinish
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.testing.check_engine import RecordingSink
from tidegate.testing.engine_pair import EnginePair, simulated_core
from tidegate.testing.manual_clock import ManualClock

MODEL = ModelInfo(258, 4096, (257,), 8, 256, 16, "ab", "by hand")


def make_request(request_id: str, *, max_tokens: int = 8, num_choices: int = 1) -> InferenceRequest:
    rules = StopRules(max_tokens=max_tokens, ignore_eos=True)
    return InferenceRequest(request_id, b"\x41\0\0\0\x42\0\0\0", SamplingParams(seed=3), rules, num_choices)


def make_pair() -> EnginePair:
    return EnginePair(simulated_core, ManualClock())


def submit(pair: EnginePair, request_id: str, **rules: int) -> RecordingSink:
    sink = RecordingSink(rules.get("num_choices", 1))
    pair.engine.submit(make_request(request_id, **rules), sink)
    return sink


class RaisingSink:
    """Breaks in whatever it is asked to do."""

    def deliver(self, delta: TokenDelta) -> None:
        raise ZeroDivisionError(delta.request_id)

    def fail(self, error: ServeError) -> None:
        raise ZeroDivisionError(str(error))


def test_nothing_is_taken_before_the_greeting() -> None:
    pair = EnginePair(simulated_core, ManualClock(), is_ready=False)
    pair.engine.retry_after_s = 7.2
    sink = RecordingSink()
    with pytest.raises(EngineUnavailable) as caught:
        pair.engine.submit(make_request("a"), sink)
    assert caught.value.retry_after_s == 8
    pair.connect()
    submit(pair, "a")
    assert pair.run() > 0


def test_a_connection_that_ends_before_its_greeting_is_no_loss() -> None:
    pair = EnginePair(simulated_core, ManualClock(), is_ready=False)
    told: list[str] = []
    pair.engine.on_lost.append(told.append)
    pair.connect(EngineFault("no memory"))
    pair.turn()
    assert pair.transport is None
    assert told == []


@pytest.mark.parametrize(("wait_s", "told_s"), [(0.0, 1), (0.2, 1), (30.5, 31), (9999.0, 120)])
def test_retry_after_stays_within_the_contract(wait_s: float, told_s: int) -> None:
    pair = EnginePair(simulated_core, ManualClock(), is_ready=False)
    pair.engine.retry_after_s = wait_s
    with pytest.raises(EngineUnavailable) as caught:
        pair.engine.submit(make_request("a"), RecordingSink())
    assert caught.value.retry_after_s == told_s


def test_commands_of_one_turn_leave_in_one_write() -> None:
    pair = make_pair()
    for name in "abc":
        submit(pair, name)
    pair.engine.abort("b")
    pair.engine.hold("c", held=True)
    pair.engine.ping(1)
    assert pair.num_writes == 0
    pair.turn()
    assert pair.num_writes == 1


def test_an_abort_takes_effect_by_the_next_step() -> None:
    pair = make_pair()
    sink = submit(pair, "a", max_tokens=1000)
    for _ in range(5):
        pair.step()
    num_tokens = len(sink.token_ids[0])
    pair.engine.abort("a")
    pair.step()
    assert sink.finishes == {0: EngineFinish.ABORTED}
    assert len(sink.token_ids[0]) == num_tokens
    pair.run()
    gauges = pair.engine.statistics().gauges
    assert (gauges.blocks_used, gauges.num_running, gauges.num_waiting) == (0, 0, 0)


def test_a_second_abort_sends_nothing() -> None:
    pair = make_pair()
    submit(pair, "a", max_tokens=1000)
    pair.step()
    pair.engine.abort("a")
    pair.turn()
    num_writes = pair.num_writes
    pair.engine.abort("a")
    pair.engine.abort("a", 0)
    pair.engine.abort("nobody")
    pair.engine.hold("nobody", held=True)
    pair.turn()
    assert pair.num_writes == num_writes


def test_loss_fails_open_sinks_once_and_the_next_epoch_serves() -> None:
    pair = make_pair()
    told: list[object] = []
    pair.engine.on_lost.append(told.append)
    pair.engine.on_ready.append(told.append)
    sinks = [submit(pair, name, max_tokens=500, num_choices=2) for name in "ab"]
    pair.step()
    pair.lose()
    pair.lose()
    for sink in sinks:
        sink.check()
        assert isinstance(sink.error, EngineLost)
    assert not pair.engine.is_ready
    assert pair.engine.num_open == 0
    assert pair.core.next_wake_at(pair.clock.now()) is not None, "the old engine still has aborts to carry out"
    pair.run()
    pair.start()
    pair.connect()
    assert [type(fact).__name__ for fact in told] == ["str", "EngineReady"]
    again = submit(pair, "a")
    pair.run()
    assert again.finishes == {0: EngineFinish.LENGTH}
    status = pair.engine.statistics()
    assert (status.epoch, status.num_restarts, status.gauges.blocks_used) == (2, 1, 0)


def test_a_sink_that_submits_again_when_it_fails_is_told_that_nobody_is_there() -> None:
    pair = make_pair()
    refusals: list[ServeError] = []

    class Retrying(RecordingSink):
        def fail(self, error: ServeError) -> None:
            super().fail(error)
            with pytest.raises(EngineUnavailable) as caught:
                pair.engine.submit(make_request("again"), self)
            refusals.append(caught.value)

    pair.engine.submit(make_request("a", max_tokens=500), Retrying())
    pair.lose()
    assert len(refusals) == 1
    assert pair.raised == []


STALE: list[tuple[str, int, TokenDelta]] = [
    ("an older epoch", 1, TokenDelta("live", 0, [9])),
    ("an epoch to come", 3, TokenDelta("live", 0, [9])),
    ("nobody's request", 2, TokenDelta("nobody", 0, [9])),
    ("an ended request", 2, TokenDelta("ended", 0, [9])),
    ("an ended choice", 2, TokenDelta("live", 1, [9])),
    ("a choice that never was", 2, TokenDelta("live", 7, [9])),
]


@pytest.mark.parametrize(("epoch", "delta"), [row[1:] for row in STALE], ids=[row[0] for row in STALE])
def test_stale_outputs_are_dropped_and_counted(epoch: int, delta: TokenDelta) -> None:
    pair = make_pair()
    pair.restart()
    ended = submit(pair, "ended")
    pair.run()
    live = submit(pair, "live", max_tokens=500, num_choices=2)
    pair.engine.abort("live", 1)
    pair.step()
    before = [list(ids) for ids in live.token_ids]
    pair.feed(encode_frame(StepOutputs(epoch, [delta], EngineGauges())))
    assert live.token_ids == before
    assert len(ended.token_ids[0]) == 8
    assert pair.engine.statistics().num_stale_outputs == 1
    live.check()
    ended.check()


def test_an_engine_of_an_older_epoch_is_hung_up_on() -> None:
    pair = make_pair()
    pair.restart()
    pair.lose()
    pair.connect(EngineReady(1, MODEL))
    pair.turn()
    assert not pair.engine.is_ready
    assert pair.channel.is_broken


BREAKS: list[tuple[str, bytes]] = [
    ("garbage", b"\x03\0\0\0\xff\xff\xff"),
    ("a hostile length", b"\xff\xff\xff\xff"),
    ("a command instead of a report", b"\x03\0\0\0\x92\x04\x01"),
    ("a second greeting", encode_frame(EngineReady(1, MODEL))),
    ("the engine's own fault", encode_frame(EngineFault("out of memory"))),
]


@pytest.mark.parametrize("data", [row[1] for row in BREAKS], ids=[row[0] for row in BREAKS])
@pytest.mark.parametrize("is_split", [False, True])
def test_what_breaks_the_protocol_ends_the_connection(data: bytes, is_split: bool) -> None:
    pair = make_pair()
    reasons: list[str] = []
    pair.engine.on_lost.append(reasons.append)
    sink = submit(pair, "a", max_tokens=500)
    pair.step()
    for part in [bytes([byte]) for byte in data] if is_split else [data]:
        pair.feed(part)
    pair.turn()
    assert isinstance(sink.error, EngineLost)
    assert pair.channel.is_broken
    assert len(reasons) == 1
    sink.check()


def test_an_engine_of_another_protocol_is_refused() -> None:
    pair = EnginePair(simulated_core, ManualClock(), is_ready=False)
    pair.connect(EngineReady(1, MODEL, protocol=2))
    pair.turn()
    assert not pair.engine.is_ready


def test_a_report_before_the_greeting_ends_the_connection() -> None:
    pair = EnginePair(simulated_core, ManualClock(), is_ready=False)
    pair.connect(Pong(1, EngineGauges()))
    pair.turn()
    assert not pair.engine.is_ready
    assert pair.channel.is_broken


def test_a_sink_that_raises_ends_alone() -> None:
    pair = make_pair()
    pair.engine.submit(make_request("bad", max_tokens=500), RaisingSink())
    good = submit(pair, "good")
    pair.run()
    assert good.finishes == {0: EngineFinish.LENGTH}
    assert pair.engine.num_open == 0
    assert [type(context["exception"]) for context in pair.raised] == [ZeroDivisionError, ZeroDivisionError]
    assert pair.engine.statistics().gauges.blocks_used == 0


def test_a_request_id_is_taken_once() -> None:
    pair = make_pair()
    submit(pair, "a")
    with pytest.raises(InternalError, match="twice"):
        submit(pair, "a")


def test_a_request_too_large_for_a_frame_is_refused_and_leaves_nothing() -> None:
    pair = make_pair()
    request = InferenceRequest("big", b"\0" * (64 * 1024 * 1024), SamplingParams(), StopRules(max_tokens=1))
    with pytest.raises(EngineRefused, match="too large"):
        pair.engine.submit(request, RecordingSink())
    assert pair.engine.num_open == 0


def test_a_refusal_of_the_engine_ends_every_choice() -> None:
    pair = make_pair()
    sink = RecordingSink(2)
    pair.engine.submit(
        InferenceRequest("r", b"\xff\xff\0\0", SamplingParams(), StopRules(max_tokens=1), num_choices=2), sink
    )
    pair.run()
    assert sink.finishes == {0: EngineFinish.FAILED, 1: EngineFinish.FAILED}
    assert "vocabulary" in sink.errors_of_choices[0]


def test_a_long_step_is_handed_over_in_slices() -> None:
    pair = make_pair()
    names = [f"r{i}" for i in range(3 * SLICE_DELTAS)]
    sinks = [submit(pair, name) for name in names]
    pair.turn()
    pair.feed(encode_frame(StepOutputs(1, [TokenDelta(name, 0, [1]) for name in names], EngineGauges())))
    assert sum(sink.has_begun for sink in sinks) == SLICE_DELTAS
    # A later step waits behind the slices of an earlier one.
    pair.feed(encode_frame(StepOutputs(1, [TokenDelta(name, 0, [2]) for name in names], EngineGauges())))
    assert sum(sink.has_begun for sink in sinks) == SLICE_DELTAS
    pair.turn()
    assert all(sink.token_ids == [[1, 2]] for sink in sinks)


def test_what_has_arrived_is_delivered_before_the_loss_is_told() -> None:
    pair = make_pair()
    names = [f"r{i}" for i in range(3 * SLICE_DELTAS)]
    sinks = [submit(pair, name) for name in names]
    pair.turn()
    deltas = [TokenDelta(name, 0, [1], EngineFinish.EOS) for name in names]
    pair.feed(encode_frame(StepOutputs(1, deltas, EngineGauges())) + b"\xff\0\0\0half a frame")
    pair.lose()
    assert all(sink.finishes == {0: EngineFinish.EOS} and sink.error is None for sink in sinks)


@given(st.lists(st.integers(0, 4000), max_size=8))
def test_every_split_of_the_bytes_delivers_the_same(places: list[int]) -> None:
    pair = make_pair()
    names = [f"r{i}" for i in range(40)]
    sinks = [submit(pair, name) for name in names]
    pair.turn()
    stream = b"".join(
        encode_frame(
            StepOutputs(1, [TokenDelta(name, 0, [i], EngineFinish.EOS if i == 3 else None) for name in names], gauges)
        )
        for i, gauges in enumerate(EngineGauges(num_steps=i) for i in range(4))
    )
    bounds = [0, *sorted(min(place, len(stream)) for place in places), len(stream)]
    for start, end in zip(bounds, bounds[1:], strict=False):  # noqa: RUF007 - an empty part is a case too
        pair.feed(stream[start:end])
    pair.turn()
    assert all(sink.token_ids == [[0, 1, 2, 3]] and sink.has_ended for sink in sinks)
    assert pair.engine.statistics().gauges.num_steps == 3
    assert pair.engine.num_open == 0


def test_pings_count_as_a_sign_of_life_when_they_are_answered() -> None:
    pair = make_pair()
    before = pair.engine.num_heard
    pair.engine.ping(5)
    assert pair.engine.num_heard == before
    pair.turn()
    assert pair.engine.num_heard == before + 1


def test_a_step_of_many_requests_is_one_frame() -> None:
    pair = make_pair()
    for name in "abcdef":
        submit(pair, name)
    assert pair.run() == pair.num_frames
