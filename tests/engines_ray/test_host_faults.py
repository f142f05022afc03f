"""What becomes of requests when something between a server and an engine fails: a host and links, without Ray."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from harness.host_scene import IMPATIENT, LEASE_S, QUICK, HostScene
from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.engine.messages import AddRequest, EngineReady, Ping, StepOutputs
from tidegate.engine.port import DeltaSink
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.ray import engine_host, host_session
from tidegate.engines.ray.boot_watch import EpochBook
from tidegate.engines.ray.engine_host import MAX_SESSIONS, EngineHost, SessionRefused
from tidegate.engines.ray.ray_channel import MAX_BEATS_AHEAD, SLICE_DELTAS, RayChannel
from tidegate.engines.ray.ray_link import LinkSettings
from tidegate.engines.ray.wire import (
    EventBatch,
    RequestFailed,
    decode_events,
    encode_command,
    encode_commands,
    encode_events,
)
from tidegate.errors import EngineLost, EngineUnavailable, ServeError, UnsupportedParameter
from tidegate.inference.finish import EngineFinish
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest
from tidegate.testing.check_engine import RecordingSink

Act = Callable[[HostScene], Awaitable[None]]


def run(act: Act, settings: LinkSettings = QUICK) -> None:
    async def go() -> None:
        async with HostScene(settings=settings) as scene:
            await act(scene)

    asyncio.run(go())


async def begin(scene: HostScene, *names: str, max_tokens: int = 500) -> list[RecordingSink]:
    """Submits requests, and waits until each has output."""
    sinks = [RecordingSink() for _ in names]
    for name, sink in zip(names, sinks, strict=True):
        scene.engine.submit(scene.make_request(name, max_tokens=max_tokens), sink)
    await scene.until(lambda: all(any(sink.token_ids) for sink in sinks))
    return sinks


async def serve_one(scene: HostScene, name: str) -> None:
    sink = RecordingSink()
    scene.engine.submit(scene.make_request(name), sink)
    await scene.until(lambda: sink.has_ended)
    assert sink.finishes == {0: EngineFinish.LENGTH}
    sink.check()


def test_a_killed_actor_fails_each_request_once_and_the_next_boot_serves() -> None:
    async def act(scene: HostScene) -> None:
        sinks = await begin(scene, "a", "b", "c")
        scene.door.die()
        await scene.until(lambda: all(sink.has_ended for sink in sinks))
        status = scene.engine.statistics()
        assert not status.is_ready
        assert status.gauges == EngineGauges(), "nothing runs in a dead engine"
        await scene.until(lambda: scene.engine.is_ready)
        assert scene.engine.statistics().epoch == 2
        await serve_one(scene, "a")
        for sink in sinks:
            sink.check()
            assert isinstance(sink.error, EngineLost)

    run(act)


def test_a_silent_actor_is_ended_and_each_request_fails_once() -> None:
    async def act(scene: HostScene) -> None:
        sinks = await begin(scene, "a", "b")
        scene.door.is_silent = True
        await scene.until(lambda: all(sink.has_ended for sink in sinks))
        await scene.until(lambda: scene.engine.is_ready)
        assert (scene.door.num_kills, scene.engine.num_stalls) == (1, 1)
        assert all(isinstance(sink.error, EngineLost) for sink in sinks)
        await serve_one(scene, "after")

    run(act, IMPATIENT)


def test_an_engine_that_dies_in_an_actor_that_lives_is_another_epoch_of_the_same_session() -> None:
    async def act(scene: HostScene) -> None:
        sinks = await begin(scene, "a", "b")
        await scene.door.restart_engine(None)
        await scene.until(lambda: all(sink.has_ended for sink in sinks) and scene.engine.is_ready)
        assert all(isinstance(sink.error, EngineLost) for sink in sinks)
        assert (scene.engine.statistics().epoch, scene.door.num_sessions) == (2, 1)
        await serve_one(scene, "after")

    run(act)


def test_a_server_that_goes_leaves_nothing_behind() -> None:
    async def act(scene: HostScene) -> None:
        sinks = await begin(scene, "a", "b")
        await scene.link.aclose()
        host = scene.door.host
        assert host is not None
        assert (host.num_active, host.num_sessions) == (0, 0)
        assert all(isinstance(sink.error, EngineLost) for sink in sinks)
        await scene.until(lambda: scene.door.pair.engine.num_open == 0)

    run(act)


def test_requests_of_a_silent_server_are_aborted_within_its_lease_and_others_go_on() -> None:
    async def act(scene: HostScene) -> None:
        host = scene.door.host
        assert host is not None
        stream = host.events("killed")
        await anext(stream)
        request = scene.make_request("orphan", max_tokens=100_000)
        host.take(encode_commands("killed", 1, [encode_command(AddRequest(request))]))
        assert host.num_active == 1
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        await scene.until(lambda: host.num_active == 0 and scene.door.pair.engine.num_open == 0)
        assert loop.time() - began_at >= LEASE_S
        assert host.num_sessions == 1, "the server that shows signs of life has kept its session"
        assert [data async for data in stream] == [], "the stream of the dead one has ended"
        await serve_one(scene, "other")

    run(act)


def test_a_request_that_comes_twice_runs_once() -> None:
    async def act(scene: HostScene) -> None:
        host = scene.door.host
        assert host is not None
        stream = host.events("s")
        await anext(stream)
        add = encode_command(AddRequest(scene.make_request("twice")))
        for number in (1, 1, 2, 2):
            host.take(encode_commands("s", number, [add]))
        assert host.num_active == 1
        await scene.until(lambda: host.num_active == 0)
        host.take(encode_commands("s", 2, [add]))
        assert host.num_active == 0, "a batch that was carried out is never carried out again"
        tokens: list[int] = []
        for report in decode_events(await anext(stream)).reports:
            if isinstance(report, StepOutputs):
                tokens += [token for delta in report.outputs for token in delta.token_ids]
        assert len(tokens) == 8
        await stream.aclose()

    run(act)


def test_a_drain_lets_what_is_open_finish_and_refuses_what_is_new() -> None:
    async def act(scene: HostScene) -> None:
        (sink,) = await begin(scene, "open", max_tokens=40)
        host = scene.door.host
        assert host is not None
        drain = asyncio.create_task(host.drain(10.0))
        await scene.until(lambda: not scene.engine.is_ready)
        assert scene.engine.statistics().condition == "the engine is drained"
        with pytest.raises(EngineUnavailable):
            scene.engine.submit(scene.make_request("new"), RecordingSink())
        await scene.until(lambda: drain.done())
        assert drain.result()
        assert sink.error is None
        await scene.until(lambda: sink.has_ended)
        assert sink.finishes == {0: EngineFinish.LENGTH}

    run(act)


def test_a_submit_that_meets_a_drain_is_refused_as_a_matter_of_time() -> None:
    async def act(scene: HostScene) -> None:
        host = scene.door.host
        assert host is not None
        host.is_draining = True
        sink = RecordingSink()
        scene.engine.submit(scene.make_request("new"), sink)
        await scene.until(lambda: sink.has_ended)
        assert isinstance(sink.error, EngineUnavailable)

    run(act)


def test_a_drain_that_does_not_end_in_time_says_so() -> None:
    async def act(scene: HostScene) -> None:
        await begin(scene, "open")
        assert scene.door.host is not None
        assert not await scene.door.host.drain(0.01)

    run(act)


def test_a_server_that_leaves_too_much_unread_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_host, "MAX_UNREAD_DELTAS", 50)
    assert host_session.MAX_UNREAD_DELTAS > 50

    async def act(scene: HostScene) -> None:
        host = scene.door.host
        assert host is not None
        stream = host.events("deaf")
        await anext(stream)
        request = scene.make_request("long", max_tokens=200)
        host.take(encode_commands("deaf", 1, [encode_command(AddRequest(request))]))
        numbers = count(2)

        def is_over() -> bool:
            host.take(encode_commands("deaf", next(numbers), [encode_command(Ping(1))]))  # it is not silent
            return host.num_sessions == 1

        await scene.until(is_over)
        assert "unread" in scene.door.raised[-1]["message"]
        await scene.until(lambda: scene.door.pair.engine.num_open == 0)
        await serve_one(scene, "other")

    run(act)


def test_servers_at_one_engine_are_bounded() -> None:
    async def act(scene: HostScene) -> None:
        host = scene.door.host
        assert host is not None
        streams = [host.events(f"s{i}") for i in range(MAX_SESSIONS - 1)]
        for stream in streams:
            await anext(stream)
        with pytest.raises(SessionRefused):
            await anext(host.events("one too many"))
        await streams[0].aclose()
        with pytest.raises(SessionRefused, match="open already"):
            await anext(host.events("s1"))
        await anext(host.events("another"))

    run(act)


class RefusingEngine:
    """An engine that refuses each request in the next of several ways."""

    def __init__(self, *refusals: Exception) -> None:
        self.on_ready: list[Callable[[EngineReady], None]] = []
        self.on_lost: list[Callable[[str], None]] = []
        self.refusals = list(refusals)

    def submit(self, request: InferenceRequest, sink: DeltaSink) -> None:
        raise self.refusals.pop(0)

    def abort(self, request_id: str, choice: int | None = None) -> None:
        raise AssertionError("nothing was taken")

    def hold(self, request_id: str, *, held: bool) -> None:
        raise AssertionError("nothing was taken")

    def statistics(self) -> EngineStatus:
        return EngineStatus(True, 1, 0, 0, EngineGauges(), None)


REFUSALS: dict[str, tuple[Exception, tuple[str, str | None]]] = {
    "a field": (UnsupportedParameter("not here", param="logit_bias"), ("UnsupportedParameter", "logit_bias")),
    "not now": (EngineUnavailable("busy", retry_after_s=9), ("EngineUnavailable", None)),
    "a fault": (ZeroDivisionError("in /some/file"), ("InternalError", None)),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_an_engine_says_of_a_request_reaches_its_server(name: str) -> None:
    refusal, expected = REFUSALS[name]

    async def go() -> None:
        reports: list[dict[str, Any]] = []
        host = EngineHost(RefusingEngine(refusal), "boot", LEASE_S, reports.append)
        stream = host.events("s")
        await anext(stream)
        request = InferenceRequest("r", b"", None, None)  # type: ignore[arg-type]
        host._carry_out(host._sessions["s"], AddRequest(request))
        (failed,) = decode_events(await anext(stream)).reports
        assert isinstance(failed, RequestFailed)
        assert (failed.kind, failed.param) == expected
        assert "/some" not in failed.message
        assert (host.num_active, len(reports)) == (0, int(name == "a fault"))

    asyncio.run(go())


def test_outputs_of_an_engine_that_is_gone_are_dropped_and_counted() -> None:
    async def act(scene: HostScene) -> None:
        await begin(scene, "open")
        channel = scene.link._channel
        assert isinstance(channel, RayChannel)
        stale = scene.engine.statistics().num_stale_outputs
        watch = channel._watch
        late = StepOutputs(0, [TokenDelta("open", 0, [1], EngineFinish.EOS)], EngineGauges())
        batch = EventBatch(watch.boot or "", watch._number + 1, 0, [late])
        await channel.take(encode_events(batch))
        assert scene.engine.num_open == 1
        assert scene.engine.statistics().num_stale_outputs == stale + 1
        scene.door.die()

    run(act)


def test_a_step_of_many_outputs_leaves_the_loop_to_others() -> None:
    async def act(scene: HostScene) -> None:
        channel = scene.link._channel
        assert isinstance(channel, RayChannel)
        watch = channel._watch
        deltas = [TokenDelta(f"nobody-{i}", 0, [1]) for i in range(3 * SLICE_DELTAS)]
        taken: list[int] = []
        take = scene.engine.take_deltas
        scene.engine.take_deltas = lambda epoch, part: (taken.append(len(part)), take(epoch, part))[1]  # type: ignore[func-returns-value, method-assign]
        turns: list[int] = []
        asyncio.get_running_loop().call_soon(lambda: turns.append(len(taken)))
        batch = EventBatch(watch.boot or "", watch._number + 1, 0, [StepOutputs(1, deltas, EngineGauges())])
        await channel.take(encode_events(batch))
        assert taken == [SLICE_DELTAS] * 3
        assert turns == [1], "somebody else had a turn behind the first slice"
        scene.door.die()

    run(act)


def test_signs_of_life_do_not_pile_up() -> None:
    async def go() -> None:
        sent: list[bytes] = []
        engine = LocalEngine(lambda _context: None)
        channel = RayChannel("s", engine, EpochBook(), sent.append, 1000.0)
        for _ in range(10 * MAX_BEATS_AHEAD):
            channel.beat()
            await asyncio.sleep(0)
        assert len(sent) == MAX_BEATS_AHEAD

    asyncio.run(go())


def test_a_lost_batch_of_events_ends_the_session_and_the_next_one_serves() -> None:
    async def act(scene: HostScene) -> None:
        (sink,) = await begin(scene, "open")
        channel = scene.link._channel
        assert isinstance(channel, RayChannel)
        channel._watch._number -= 1
        await scene.until(lambda: sink.has_ended)
        assert isinstance(sink.error, ServeError)
        await scene.until(lambda: scene.engine.is_ready)
        assert scene.door.num_sessions == 2
        assert scene.engine.statistics().epoch == 1, "the engine is the one that it was"
        await serve_one(scene, "open")

    run(act)


def test_before_the_actor_answers_the_engine_says_what_it_waits_for() -> None:
    async def go() -> None:
        scene = HostScene(settings=IMPATIENT)
        scene.door.is_silent = True
        entering = asyncio.create_task(scene.__aenter__())
        while scene.door.num_sessions == 0:
            await asyncio.sleep(0)
        condition = scene.engine.statistics().condition
        assert condition == (
            "its actor was asked for and has not answered yet: Ray looks for a place with CPU=2, or it starts"
        )
        await asyncio.sleep(3 * IMPATIENT.stall_timeout_s)
        assert scene.door.num_kills == 0, "an actor that waits for a machine is not silent"
        scene.door.is_silent = False
        await entering
        await scene.__aexit__()

    asyncio.run(go())
