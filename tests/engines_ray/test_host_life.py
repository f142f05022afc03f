"""What an actor does with its engine on a server's word: the drain before a restart, and the end. Without Ray."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from tidegate.engine.messages import AddRequest, CacheFlushed, Command, EngineReady, FlushCache, StepOutputs
from tidegate.engine.port import WatchedEngine
from tidegate.engines.ray import engine_actor
from tidegate.engines.ray.actor_spec import HostedEngineSpec, encode_spec
from tidegate.engines.ray.engine_actor import EngineActor
from tidegate.engines.ray.engine_host import EngineHost, HostRetired, SessionRefused
from tidegate.engines.ray.hosted_engine import HostedEngine
from tidegate.engines.ray.wire import (
    EngineAway,
    EventBatch,
    RequestFailed,
    decode_events,
    encode_command,
    encode_commands,
)
from tidegate.inference.request import InferenceRequest
from tidegate.inference.sampling import SamplingParams, StopRules
from tidegate.testing.engine_pair import EnginePair, simulated_core
from tidegate.testing.manual_clock import ManualClock

SPEC = HostedEngineSpec(kind="pair", lease_s=60.0)
PATIENCE_S = 20.0


class PairInActor:
    """See `HostedEngine`: an engine that steps when it is told to."""

    def __init__(self) -> None:
        self.pair = EnginePair(simulated_core, ManualClock(), is_ready=False)
        self.num_ends = 0

    @property
    def engine(self) -> WatchedEngine:
        return self.pair.engine

    async def start(self) -> None:
        self.pair.connect()

    async def restart(self) -> None:
        self.pair.restart()

    async def wait_ready(self) -> None:
        return None

    async def aclose(self) -> None:
        self.num_ends += 1
        self.pair.lose()


class PairActor(EngineActor):
    def make_hosted(self, spec: HostedEngineSpec) -> HostedEngine:
        self.inside = PairInActor()
        return self.inside


class Server:
    """One server's session with the actor, read as far as it has come."""

    def __init__(self, actor: PairActor, name: str) -> None:
        self._actor = actor
        self._name = name
        self._numbers = count(1)
        self.batches: list[EventBatch] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for data in self._actor.events(self._name, SPEC.digest):
            self.batches.append(decode_events(data))

    async def tell(self, command: Command) -> None:
        await self._actor.tell(encode_commands(self._name, next(self._numbers), [encode_command(command)]))

    async def ask(self, request_id: str, max_tokens: int = 8) -> None:
        request = InferenceRequest(request_id, bytes(16), SamplingParams(seed=1), StopRules(max_tokens=max_tokens))
        await self.tell(AddRequest(request))

    async def leave(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    def of(self, kind: type[Any]) -> list[Any]:
        return [report for batch in self.batches for report in batch.reports if isinstance(report, kind)]

    @property
    def num_tokens(self) -> int:
        return sum(len(delta.token_ids) for step in self.of(StepOutputs) for delta in step.outputs)


def run(act: Callable[[PairActor], Awaitable[None]]) -> None:
    async def go() -> None:
        actor = PairActor(encode_spec(SPEC))
        try:
            await act(actor)
        finally:
            await actor.stop()
            host = host_of(actor)
            for name in list(host._sessions):
                host.leave(name)

    asyncio.run(go())


def host_of(actor: PairActor) -> EngineHost:
    assert actor._host is not None
    return actor._host


async def until(actor: PairActor, check: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not check():
            if actor.inside.pair.transport is not None:
                actor.inside.pair.step()
            await asyncio.sleep(0)


async def join(actor: PairActor, name: str) -> Server:
    server = Server(actor, name)
    async with asyncio.timeout(PATIENCE_S):
        while not server.batches:
            await asyncio.sleep(0)
    return server


def test_a_drained_restart_lets_every_server_finish_takes_nothing_meanwhile_and_then_serves_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_actor, "AWAY_S", 1000.0)

    async def act(actor: PairActor) -> None:
        one, other = await join(actor, "one"), await join(actor, "other")
        await other.ask("open", max_tokens=40)
        await until(actor, lambda: other.num_tokens > 0)
        restart = asyncio.create_task(actor.restart_engine(PATIENCE_S))
        await until(actor, lambda: one.batches[-1].is_draining and other.batches[-1].is_draining)
        await one.ask("too early")
        await until(actor, lambda: bool(one.of(RequestFailed)))
        assert one.of(RequestFailed)[0].kind == "EngineUnavailable"
        assert actor.inside.pair.epoch == 1
        await until(actor, restart.done)
        assert restart.result()
        assert (actor.inside.pair.epoch, other.num_tokens) == (2, 40)
        await until(actor, lambda: not one.batches[-1].is_draining)
        assert [away.was_asked for away in one.of(EngineAway)] == [True]
        await one.ask("after")
        await until(actor, lambda: one.num_tokens == 8)

    run(act)


def test_a_drain_that_takes_too_long_restarts_nothing_and_is_undone() -> None:
    async def act(actor: PairActor) -> None:
        server = await join(actor, "one")
        await server.ask("open", max_tokens=40)
        assert not await actor.restart_engine(0.01)
        assert (actor.inside.pair.epoch, host_of(actor).is_draining) == (1, False)
        await server.ask("new")
        await until(actor, lambda: server.num_tokens == 48)
        assert not server.batches[-1].is_draining

    run(act)


def test_a_restart_at_once_cuts_what_is_open_and_nobody_is_to_blame_for_it() -> None:
    async def act(actor: PairActor) -> None:
        server = await join(actor, "one")
        await server.ask("open", max_tokens=400)
        await until(actor, lambda: server.num_tokens > 0)
        assert await actor.restart_engine(None)
        await until(actor, lambda: bool(server.of(EngineAway)))
        assert server.of(EngineAway) == [EngineAway(server.of(EngineAway)[0].reason, was_asked=True)]
        assert host_of(actor).num_active == 0
        actor.inside.pair.lose()
        await until(actor, lambda: len(server.of(EngineAway)) == 2)
        assert not server.of(EngineAway)[1].was_asked, "the next loss is one of its own"

    run(act)


def test_an_end_that_was_asked_for_while_no_engine_was_there_excuses_no_later_death() -> None:
    async def act(actor: PairActor) -> None:
        server = await join(actor, "one")
        actor.inside.pair.lose()
        await actor.restart_engine(None)
        await until(actor, lambda: server.batches[-1].condition is None)
        actor.inside.pair.lose()
        await until(actor, lambda: len(server.of(EngineAway)) == 2)
        assert [away.was_asked for away in server.of(EngineAway)] == [False, False]

    run(act)


def test_an_engine_ends_with_the_last_server_that_retires_it() -> None:
    async def act(actor: PairActor) -> None:
        one, other = await join(actor, "one"), await join(actor, "other")
        await other.ask("open", max_tokens=40)
        await one.leave()
        assert not await actor.retire(SPEC.digest, 0.01)
        assert actor.inside.num_ends == 0
        await (another := await join(actor, "another")).leave()
        await until(actor, lambda: other.num_tokens == 40)
        retirement = asyncio.create_task(actor.retire(SPEC.digest, PATIENCE_S))
        await asyncio.sleep(0)
        await other.leave()
        assert await retirement
        assert actor.inside.num_ends == 1
        with pytest.raises(HostRetired):
            await anext(actor.events("late", SPEC.digest))
        assert another.of(RequestFailed) == []

    run(act)


def test_an_engine_of_other_settings_is_not_ended() -> None:
    async def act(actor: PairActor) -> None:
        await (await join(actor, "one")).leave()
        assert not await actor.retire("another digest", PATIENCE_S)
        assert actor.inside.num_ends == 0
        await join(actor, "two")

    run(act)


def test_a_stream_that_is_dropped_ends_its_session() -> None:
    async def act(actor: PairActor) -> None:
        server = await join(actor, "one")
        with pytest.raises(SessionRefused):
            await anext(actor.events("one", SPEC.digest))
        await server.ask("open", max_tokens=400)
        assert host_of(actor).num_active == 1, "a session that is refused ends no other"
        await server.leave()
        assert (host_of(actor).num_active, host_of(actor).num_sessions) == (0, 0)
        for _ in range(5):
            actor.inside.pair.step()
            await asyncio.sleep(0)
        assert actor.inside.pair.engine.num_open == 0, "it is aborted, and does not run to its end"

    run(act)


def test_a_flush_while_no_engine_is_there_is_answered_all_the_same() -> None:
    async def act(actor: PairActor) -> None:
        server = await join(actor, "one")
        actor.inside.pair.lose()
        await until(actor, lambda: bool(server.of(EngineAway)))
        await server.tell(FlushCache(5))
        await until(actor, lambda: bool(server.of(CacheFlushed)))
        assert server.of(CacheFlushed) == [CacheFlushed(5, 0)]

    run(act)


def test_a_server_that_comes_while_no_engine_is_there_is_greeted_by_the_next_one_alone() -> None:
    async def act(actor: PairActor) -> None:
        await join(actor, "one")
        actor.inside.pair.lose()
        late = await join(actor, "late")
        assert late.of(EngineReady) == []
        actor.inside.pair.connect()
        await until(actor, lambda: bool(late.of(EngineReady)))
        assert [ready.epoch for ready in late.of(EngineReady)] == [actor.inside.pair.epoch]

    run(act)
