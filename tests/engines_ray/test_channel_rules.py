"""What a server makes of each thing that an actor says, and an actor of each that a server does: without Ray."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness.host_scene import IMPATIENT, LEASE_S, QUICK, HostScene
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import EngineReady, StepOutputs
from tidegate.engines.ray.engine_host import EngineHost
from tidegate.engines.ray.ray_channel import SLICE_DELTAS, OtherVersion, RayChannel
from tidegate.engines.ray.ray_link import LinkSettings
from tidegate.engines.ray.wire import EventBatch, RayReport, encode_events
from tidegate.errors import EngineLost
from tidegate.inference.output import TokenDelta
from tidegate.testing.check_engine import RecordingSink

Act = Callable[[HostScene], Awaitable[None]]


def run(act: Act, settings: LinkSettings = QUICK) -> None:
    async def go() -> None:
        async with HostScene(settings=settings) as scene:
            await act(scene)

    asyncio.run(go())


def channel_of(scene: HostScene) -> RayChannel:
    channel = scene.link._channel
    assert isinstance(channel, RayChannel)
    return channel


def host_of(scene: HostScene) -> EngineHost:
    assert scene.door.host is not None
    return scene.door.host


async def say(scene: HostScene, *reports: RayReport, **fields: Any) -> None:
    """The actor says this, in the batch that is due; its own next one does not come any more."""
    channel = channel_of(scene)
    watch = channel._watch
    await channel.take(encode_events(EventBatch(watch.boot or "", watch._number + 1, 0, list(reports), **fields)))


async def begin(scene: HostScene, name: str = "open") -> RecordingSink:
    sink = RecordingSink()
    scene.engine.submit(scene.make_request(name, max_tokens=100_000), sink)
    await scene.until(lambda: any(sink.token_ids))
    return sink


def test_what_was_confirmed_is_kept_no_longer() -> None:
    async def act(scene: HostScene) -> None:
        await begin(scene)
        await scene.until(lambda: len(channel_of(scene)._unconfirmed) == 0)
        scene.engine.abort("open")

    run(act)


def test_an_actor_that_speaks_is_never_taken_for_hung_however_long() -> None:
    async def act(scene: HostScene) -> None:
        await begin(scene)
        beats = IMPATIENT.patience * 3
        heard = channel_of(scene).num_batches
        await scene.until(lambda: channel_of(scene).num_batches > heard + 10 * beats)
        loop = asyncio.get_running_loop()
        until = loop.time() + beats * IMPATIENT.heartbeat_s
        await scene.until(lambda: loop.time() > until)
        assert (scene.door.num_kills, scene.engine.num_stalls) == (0, 0)
        scene.engine.abort("open")

    run(act, IMPATIENT)


def test_the_actor_is_told_what_was_lost_so_that_it_is_looked_for() -> None:
    async def act(scene: HostScene) -> None:
        scene.door.die()
        await scene.until(lambda: scene.engine.statistics().epoch == 2)
        assert scene.door.last_trouble.words == "its actor died"

    run(act)


def test_an_actor_of_another_version_is_not_served_and_says_so() -> None:
    async def act(scene: HostScene) -> None:
        model = scene.engine.statistics().model
        assert model is not None
        with pytest.raises(OtherVersion, match="protocol 999"):
            await say(scene, EngineReady(2, model, protocol=999))
        scene.door.die()

    run(act)


def test_an_engine_that_was_started_anew_without_a_word_has_lost_what_was_open() -> None:
    async def act(scene: HostScene) -> None:
        sink = await begin(scene)
        model = scene.engine.statistics().model
        assert model is not None
        await say(scene, EngineReady(99, model))
        assert isinstance(sink.error, EngineLost)
        assert (scene.engine.is_ready, scene.engine.statistics().epoch) == (True, 2)
        scene.door.die()

    run(act)


def test_what_the_actor_says_of_its_engine_is_told_to_operators() -> None:
    async def act(scene: HostScene) -> None:
        await scene.until(lambda: channel_of(scene).condition is None)
        await say(scene, condition="the model is read", is_draining=True)
        assert channel_of(scene).condition == "the model is read"
        assert not scene.engine.is_ready
        scene.door.die()

    run(act)


def test_a_session_that_ends_among_many_outputs_hands_on_no_more_of_them() -> None:
    async def act(scene: HostScene) -> None:
        channel = channel_of(scene)
        taken: list[int] = []
        scene.engine.take_deltas = lambda _epoch, part: taken.append(len(part))  # type: ignore[method-assign]
        deltas = [TokenDelta(f"nobody-{i}", 0, [1]) for i in range(3 * SLICE_DELTAS)]
        asyncio.get_running_loop().call_soon(lambda: channel.end("it is over"))
        await say(scene, StepOutputs(1, deltas, EngineGauges()))
        assert taken == [SLICE_DELTAS]
        scene.door.die()

    run(act)


@pytest.mark.parametrize("is_asked", [True, False], ids=["asked for", "died"])
def test_a_loss_is_blamed_on_requests_unless_somebody_wanted_it(is_asked: bool) -> None:
    async def act(scene: HostScene) -> None:
        sink = await begin(scene)
        host_of(scene).is_asked_to_end = is_asked
        scene.door.pair.restart()
        await scene.until(lambda: sink.has_ended and scene.engine.is_ready)
        assert scene.engine.statistics().num_poison_suspects == (0 if is_asked else 1)
        later = await begin(scene, "later")
        scene.door.pair.restart()
        await scene.until(lambda: later.has_ended and scene.engine.is_ready)
        assert scene.engine.statistics().num_poison_suspects > 0, "the next loss of the same session is one"

    run(act)


@pytest.mark.parametrize("has_died", [True, False])
def test_an_end_of_the_session_is_blamed_on_requests_only_with_the_actors_death(has_died: bool) -> None:
    async def act(scene: HostScene) -> None:
        sink = await begin(scene)
        channel_of(scene).end("it is over", has_died=has_died)
        assert sink.has_ended
        assert scene.engine.statistics().num_poison_suspects == int(has_died)
        assert scene.engine.statistics().gauges == EngineGauges()
        scene.door.die()

    run(act)


@pytest.mark.parametrize("is_there", [True, False], ids=["ready", "away"])
def test_a_flush_is_answered(is_there: bool) -> None:
    async def act(scene: HostScene) -> None:
        if not is_there:
            scene.door.pair.lose()
        answers: list[int | None] = []
        scene.engine.flush_cache(answers.append)
        if not is_there:
            host_of(scene)._note_lost("tell nobody")
        await scene.until(lambda: bool(answers))
        assert (answers[0] is None) is not is_there
        if not is_there:
            scene.door.pair.restart()

    run(act)


def test_accounts_that_move_without_an_output_reach_the_server_unasked() -> None:
    async def act(scene: HostScene) -> None:
        await begin(scene)
        await scene.until(lambda: scene.engine.gauges.num_running == 1)
        channel_of(scene).beat = lambda: None  # type: ignore[method-assign]
        scene.engine.hold("open", held=True)
        await scene.until(lambda: scene.engine.gauges.num_held == 1)
        scene.engine.hold("open", held=False)
        scene.engine.abort("open")
        await scene.until(lambda: scene.engine.num_open == 0)

    run(act)


def test_an_engine_that_was_given_up_is_told_to_the_server() -> None:
    async def act(scene: HostScene) -> None:
        host_of(scene).has_failed = True
        await scene.until(lambda: channel_of(scene).has_failed)

    run(act)


def test_a_server_that_never_says_anything_loses_its_session_too() -> None:
    async def act(scene: HostScene) -> None:
        stream = host_of(scene).events("mute")
        await anext(stream)
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        await scene.until(lambda: host_of(scene).num_sessions == 1)
        assert loop.time() - began_at >= LEASE_S
        assert [data async for data in stream] == []

    run(act)


def test_a_session_that_has_ended_gathers_no_outputs() -> None:
    async def act(scene: HostScene) -> None:
        await begin(scene)
        (session,) = host_of(scene)._sessions.values()
        host_of(scene).leave(session.name)
        unread = session.num_unread
        for _ in range(50):
            scene.door.pair.step()
            await asyncio.sleep(0)
        assert session.num_unread == unread
        await scene.until(lambda: scene.engine.is_ready)

    run(act)


def test_commands_are_sent_again_after_two_signs_of_life_and_not_at_once() -> None:
    assert LinkSettings(heartbeat_s=1.0).resend_after_s == 2.0
    assert LinkSettings(heartbeat_s=0.01).resend_after_s == 0.5
