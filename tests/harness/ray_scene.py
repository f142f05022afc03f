"""A server's half of an engine on a real Ray cluster, on one loop: what `check_engine` and the fault tests drive."""

import asyncio
import os
import signal
from itertools import count
from typing import Any

from harness.engine_scene import EngineScene
from tidegate.engine.options import EngineOptions
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.ray.actor_spec import ActorNeeds, HostedEngineSpec
from tidegate.engines.ray.cluster import ClusterAddress
from tidegate.engines.ray.engine_actor import EngineActor
from tidegate.engines.ray.ray_door import RayDoor
from tidegate.engines.ray.ray_link import LinkSettings, RayLink

QUICK = LinkSettings(heartbeat_s=0.1, stall_timeout_s=2.0, first_wait_s=0.05, max_wait_s=0.5)
LEASE_S = 6.0
SIMULATED = HostedEngineSpec(
    kind="simulated",
    lease_s=LEASE_S,
    process=EngineOptions(backend="simulated", max_sequences=64, simulated_model="hash"),
    restart_wait_s=0.01,
)
_NAMES = count(1)


class RayScene(EngineScene):
    """Used as an async context manager; ready when entered. `name`: the actor's, which is shared, and stays."""

    patience_s = 60.0
    pause_s = 0.002

    def __init__(
        self,
        address: str,
        name: str,
        spec: HostedEngineSpec = SIMULATED,
        prompt_tokens: int = 20,
        actor_class: type[EngineActor] = EngineActor,
    ) -> None:
        self._where = ClusterAddress(address, "tests")
        self._name = name
        self._spec = spec
        self._class = actor_class
        self.prompt_tokens = prompt_tokens
        self.notes: list[str] = []
        self.reports: list[dict[str, Any]] = []

    async def __aenter__(self) -> "RayScene":
        self.engine = LocalEngine(self.reports.append)
        needs = ActorNeeds(num_cpus=0.1, is_detached=True)
        self.door = RayDoor(self._where, self._name, self._spec, needs, self._class)
        session = f"session-{os.getpid()}-{next(_NAMES)}"
        numbers = count(1)
        self.link = RayLink(
            self._name, self.engine, self.door, QUICK, lambda: f"{session}-{next(numbers)}", self.notes.append
        )
        self.link.start()
        async with asyncio.timeout(self.patience_s):
            await self.link.wait_ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.link.aclose()
        await self.door.aclose()
        assert self.engine.num_open == 0
        assert self.reports == []

    async def lose(self) -> None:
        """SIGKILL to the actor's process."""
        await self.signal(signal.SIGKILL)

    async def signal(self, number: int) -> None:
        os.kill((await self.door.identify()).process_id, number)
