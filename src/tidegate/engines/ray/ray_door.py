"""RayDoor: an engine actor by its name, over Ray. The only file that calls Ray's API on actors.

What blocks runs on a thread. Events come from one generator; leaving it cancels nothing by itself, so it is cancelled
explicitly on every way out.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from types import ModuleType
from typing import Any, TypeAlias

from tidegate.engines.ray.actor_door import ActorDoor, ActorFacts
from tidegate.engines.ray.actor_spec import ActorNeeds, HostedEngineSpec, encode_spec
from tidegate.engines.ray.cluster import CLUSTER, ClusterAddress, call_aside, load_ray
from tidegate.engines.ray.engine_actor import EngineActor
from tidegate.engines.ray.ray_trouble import Remedy, Trouble

MAX_CONCURRENT_CALLS = 2048
"""Calls that one actor works on at once: a stream for each server, and their commands."""
UNREAD_BATCHES = 256
"""Batches on their way to a server that does not read; the actor then gathers what follows into one."""
_ANSWER_S = 10.0
_END_S = 30.0
"""How long the end of an engine inside may take."""

Handle: TypeAlias = Any
"""An object of Ray's, which has no types that we could name without loading it."""

_log = logging.getLogger(__name__)


class ActorAbsent(Exception):
    """Whoever makes the actor has not made it yet, or it is gone."""


class RayDoor(ActorDoor):
    """`name` is the actor's, unique in the namespace. `actor_class`: what Ray makes an actor of. `is_guest`: another
    process makes the actor, and ends it; this one only uses it.
    """

    def __init__(
        self,
        where: ClusterAddress,
        name: str,
        spec: HostedEngineSpec,
        needs: ActorNeeds,
        actor_class: type[EngineActor] = EngineActor,
        *,
        is_guest: bool = False,
    ) -> None:
        self.name = name
        self._where = where
        self._spec = spec
        self._needs = needs
        self._class = actor_class
        self._is_guest = is_guest
        self._has_spoken = False
        self._has_given_up = False
        self._ray: ModuleType | None = None
        self._actor: Handle = None
        self._tell: Handle = None
        self._finding: asyncio.Future[Any] | None = None

    @property
    def wanted(self) -> str:
        """See `ActorDoor.wanted`."""
        return self._needs.in_words

    async def open(self) -> None:
        """See `ActorDoor.open`."""
        if self._actor is None:
            self._finding = call_aside(self._find)
            self._actor = await asyncio.shield(self._finding)
            self._tell = self._actor.tell.options(num_returns=0)

    async def events(self, session: str) -> AsyncGenerator[bytes, None]:
        """See `ActorDoor.events`."""
        method = self._actor.events.options(num_returns="streaming", _generator_backpressure_num_objects=UNREAD_BATCHES)
        stream = method.remote(session, self._spec.digest)
        try:
            async for reference in stream:
                data = await reference
                self._has_spoken = True
                yield data
        finally:
            with contextlib.suppress(Exception):
                load_ray().cancel(stream)

    def tell(self, data: bytes) -> None:
        """See `ActorDoor.tell`."""
        try:
            self._tell.remote(data)
        except Exception as fault:
            _log.debug("a call to an actor was not sent: %s", fault)

    def forget(self, trouble: Trouble) -> None:
        """See `ActorDoor.forget`."""
        self._has_spoken = False
        if trouble.remedy is not Remedy.ATTACH:
            self._actor = None

    async def kill(self) -> None:
        """See `ActorDoor.kill`."""
        await self._quietly(lambda: load_ray().kill(self._actor, no_restart=False))

    async def identify(self) -> ActorFacts:
        """See `ActorDoor.identify`."""
        return ActorFacts(*await _answer(self._actor.identify.remote(), _ANSWER_S))

    async def restart_engine(self, drain_s: float | None) -> bool:
        """See `ActorDoor.restart_engine`."""
        answer = self._actor.restart_engine.remote(drain_s)
        return bool(await _answer(answer, (drain_s or 0.0) + _END_S))

    async def retire(self, patience_s: float) -> bool:
        """See `ActorDoor.retire`."""
        await self._wait_found()
        is_alone = not self._is_guest
        if self._needs.is_detached and self._actor is not None:
            # One that never answered us may still be looking for a machine: who else uses it is not waited for.
            wait_s, more_s = (patience_s, _END_S) if self._has_spoken else (0.0, _ANSWER_S)
            with contextlib.suppress(Exception):  # nobody can use one that does not answer
                answer = self._actor.retire.remote(self._spec.digest, wait_s)
                is_alone = bool(await _answer(answer, wait_s + more_s))
        await self._leave(ends=is_alone)
        return is_alone

    async def aclose(self) -> None:
        """See `ActorDoor.aclose`."""
        await self._wait_found()
        await self._leave(ends=not self._needs.is_detached and not self._is_guest)

    async def _wait_found(self) -> None:
        """Waits for an actor that is being made: it is ours to end as well."""
        finding, self._finding = self._finding, None
        if finding is None:
            return
        await asyncio.wait({finding}, timeout=_ANSWER_S)
        if not finding.done():
            self._has_given_up = True
        elif finding.exception() is None and self._actor is None:
            self._actor = finding.result()

    async def _leave(self, *, ends: bool) -> None:
        if self._ray is None:
            return
        actor, self._actor = self._actor, None
        if ends and self._has_spoken and actor is not None:
            with contextlib.suppress(Exception):
                await _answer(actor.stop.remote(), _END_S)
        if ends:
            await self._quietly(lambda: self._end(actor))
        self._ray = None
        await self._quietly(CLUSTER.release)

    async def _quietly(self, act: Callable[[], object]) -> None:
        try:
            await call_aside(act)
        except Exception as fault:
            _log.debug("Ray did not do what it was asked: %s", fault)

    def _find(self) -> Handle:
        """Returns the actor of this name. Blocks. Raises ActorAbsent, and whatever Ray does."""
        ray = self._ray = self._ray or CLUSTER.attach(self._where)
        actor = self._look_up(ray) if self._is_guest else self._make(ray)
        if self._has_given_up:
            if not self._needs.is_detached and not self._is_guest:
                self._end(actor)
            CLUSTER.release()
        return actor

    def _look_up(self, ray: ModuleType) -> Handle:
        try:
            return ray.get_actor(self.name, namespace=self._where.namespace)
        except ValueError as error:
            raise ActorAbsent(str(error)) from error

    def _make(self, ray: ModuleType) -> Handle:
        """Returns the actor of this name, made if there is none."""
        needs = self._needs
        options: dict[str, Any] = {
            "name": self.name,
            "namespace": self._where.namespace,
            "get_if_exists": True,
            "lifetime": "detached" if needs.is_detached else "non_detached",
            "max_restarts": -1 if needs.max_restarts is None else needs.max_restarts,
            "max_task_retries": 0,
            "max_concurrency": MAX_CONCURRENT_CALLS,
            **self._place(),
        }
        return ray.remote(self._class).options(**options).remote(encode_spec(self._spec))

    def _place(self) -> dict[str, Any]:
        needs = self._needs
        if not needs.bundles:
            return {
                "num_cpus": needs.num_cpus,
                "num_gpus": needs.num_gpus,
                "memory": needs.memory_bytes,
                "resources": needs.resources,
            }
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        first = needs.bundles[0]
        strategy = PlacementGroupSchedulingStrategy(
            self._bundles(), placement_group_bundle_index=0, placement_group_capture_child_tasks=True
        )
        # What the engine starts takes the rest of the first bundle: only the processors are the actor's own.
        return {"num_cpus": min(needs.num_cpus, first.get("CPU", 0.0)), "num_gpus": 0, "scheduling_strategy": strategy}

    def _bundles(self) -> Handle:
        from ray.util import get_placement_group, placement_group

        try:
            return get_placement_group(self._bundles_name)
        except ValueError:
            lifetime = "detached" if self._needs.is_detached else None
            return placement_group(
                list(self._needs.bundles), strategy=self._needs.strategy, name=self._bundles_name, lifetime=lifetime
            )

    def _end(self, actor: Handle) -> None:
        """Ends the actor, if there is one, and gives up its bundles. Blocks."""
        if actor is not None:
            load_ray().kill(actor, no_restart=True)
        if self._needs.bundles:
            from ray.util import get_placement_group, remove_placement_group

            with contextlib.suppress(ValueError):  # they were never asked for
                remove_placement_group(get_placement_group(self._bundles_name))

    @property
    def _bundles_name(self) -> str:
        return f"{self.name}-bundles"


async def _answer(reference: Handle, timeout_s: float) -> Handle:
    """Returns what a call came to. Raises TimeoutError, and whatever the call did."""
    async with asyncio.timeout(timeout_s):  # wait_for may swallow the caller's own end
        return await reference
