"""An engine host without Ray: a real engine behind a real host behind a real link, on one loop.

The door stands in for Ray alone: it carries bytes, and loses, repeats or reorders calls as it is told.
"""

import asyncio
from collections.abc import AsyncGenerator
from itertools import count
from random import Random
from typing import Any

from harness.engine_scene import EngineScene
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.ray.actor_door import ActorDoor, ActorFacts
from tidegate.engines.ray.engine_host import EngineHost
from tidegate.engines.ray.ray_link import LinkSettings, RayLink
from tidegate.engines.ray.ray_trouble import Trouble
from tidegate.testing.engine_pair import EnginePair, simulated_core
from tidegate.testing.manual_clock import ManualClock

QUICK = LinkSettings(heartbeat_s=0.02, stall_timeout_s=10.0, first_wait_s=0.001, max_wait_s=0.01)
IMPATIENT = LinkSettings(heartbeat_s=0.02, stall_timeout_s=0.2, first_wait_s=0.001, max_wait_s=0.01)
LEASE_S = 0.5


class ActorDiedError(Exception):
    """Bears the name of Ray's."""


class FaultyDoor(ActorDoor):
    """`dice` decides which calls get lost, come twice or late; None for a door without faults."""

    def __init__(self, dice: Random | None = None) -> None:
        self.pair = EnginePair(simulated_core, ManualClock())
        self.boots = count(1)
        self.host: EngineHost | None = None
        self.is_dead = False
        self.is_silent = False
        """Nothing of what the host says arrives."""
        self.num_kills = self.num_sessions = 0
        self.raised: list[dict[str, Any]] = []
        self._dice = dice
        self._care: asyncio.Task[None] | None = None
        self._late: list[bytes] = []

    wanted = "a place with CPU=2"

    async def open(self) -> None:
        self.is_dead = False
        if self.host is None:
            if self.pair.transport is None:
                self.pair.restart()
            self.host = EngineHost(self.pair.engine, f"boot-{next(self.boots)}", LEASE_S, self.raised.append)
            if self.pair.engine.is_ready:  # it was ready before the host was there
                self.pair.lose()
                self.pair.restart()
            self._care = asyncio.create_task(self.host.run())

    async def events(self, session: str) -> AsyncGenerator[bytes, None]:
        assert self.host is not None
        self.num_sessions += 1
        stream = self.host.events(session)
        try:
            async for data in stream:
                while self.is_silent and not self.is_dead:
                    await asyncio.sleep(0.005)
                if self.is_dead:
                    raise ActorDiedError
                yield data
            if self.is_dead:
                raise ActorDiedError
        finally:
            await stream.aclose()

    def tell(self, data: bytes) -> None:
        host = self.host
        if host is None:
            return
        fate = 1.0 if self._dice is None else self._dice.random()
        if fate < 0.15:
            return
        if fate < 0.3:
            self._late.append(data)
            return
        for one in (data, *self._late):
            host.take(one)
        self._late.clear()
        if fate < 0.45:
            host.take(data)

    def forget(self, trouble: Trouble) -> None:
        self.last_trouble = trouble

    async def kill(self) -> None:
        self.num_kills += 1
        self.die()

    async def identify(self) -> ActorFacts:
        raise NotImplementedError

    async def restart_engine(self, drain_s: float | None) -> bool:
        assert self.host is not None
        if drain_s is not None and not await self.host.drain(drain_s):
            return False
        self.pair.restart()
        return True

    async def retire(self, patience_s: float) -> bool:
        assert self.host is not None
        return await self.host.retire(patience_s)

    async def aclose(self) -> None:
        if self._care is not None:
            self._care.cancel()

    def die(self) -> None:
        """The actor's process ends at once, and its engine with it."""
        host, self.host = self.host, None
        self.is_dead, self.is_silent = True, False
        self.pair.engine.on_ready.clear()
        self.pair.engine.on_lost.clear()
        self.pair.lose()
        if self._care is not None:
            self._care.cancel()
        if host is not None:
            for name in list(host._sessions):
                host._sessions[name].end()


class HostScene(EngineScene):
    """Used as an async context manager; ready when entered. Fits `check_engine`."""

    def __init__(self, dice: Random | None = None, settings: LinkSettings = QUICK) -> None:
        self.door = FaultyDoor(dice)
        self.notes: list[str] = []
        self._settings = settings

    async def __aenter__(self) -> "HostScene":
        self.reports: list[dict[str, Any]] = []
        names = count(1)
        self.engine = LocalEngine(self.reports.append)
        self.link = RayLink(
            "an-actor", self.engine, self.door, self._settings, lambda: f"session-{next(names)}", self.notes.append
        )
        self.link.start()
        await self.until(lambda: self.engine.is_ready)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.link.aclose()
        await self.door.aclose()
        assert self.engine.num_open == 0
        assert self.reports == []
        assert self.door.host is None or self.door.host.num_active == 0

    def work(self) -> None:
        if self.door.pair.transport is not None:
            self.door.pair.step()

    async def lose(self) -> None:
        self.door.die()
