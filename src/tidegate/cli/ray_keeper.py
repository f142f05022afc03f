"""RayKeeper: what the server does with an engine on Ray, in the shape of the supervisor of one."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_log import note_to
from tidegate.cli.inner_engine import inner_settings
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.ray_section import UnreadableAmount, read_amounts
from tidegate.cli.remote_settings import is_vllm
from tidegate.cli.settings import Settings
from tidegate.cli.wiring import engine_options
from tidegate.engine.options import EngineOptions
from tidegate.engines.life.wait_event import wait_event
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.ray.actor_door import ActorDoor, ActorFacts
from tidegate.engines.ray.actor_spec import ActorNeeds, HostedEngineSpec
from tidegate.engines.ray.cluster import LOCAL, ClusterAddress, RayMissing, load_ray
from tidegate.engines.ray.engine_actor import EngineActor
from tidegate.engines.ray.ray_door import RayDoor
from tidegate.engines.ray.ray_link import LinkSettings, RayLink
from tidegate.engines.ray.ray_trouble import trouble_of
from tidegate.errors import EngineUnavailable
from tidegate.ids import mint_id
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.system import entropy

SESSION_CHARS = 16
RESTART_SEEN_S = 30.0
"""How long a restart may take until the old engine is seen to have gone."""
LEAVE_S = 1.0
"""By how much the wait for servers that leave a shared engine outlasts the lease of those that were killed."""
MISSED_BEATS = 3
"""A lease must outlast so many signs of life."""


class RayKeeper:
    """Belongs to one event loop. The engine's process is Ray's affair: there is no socket of it here.

    `actor` is the name by which other processes of this server find it. `lease_s`: how long a server that was killed
    counts as one that uses the engine.
    """

    process_id: None = None
    socket_path: None = None

    can_flush = True
    """Whether an operator can have its cache dropped."""

    def __init__(self, actor: str, engine: LocalEngine, door: ActorDoor, link: RayLink, lease_s: float) -> None:
        self.actor = actor
        self.engine = engine
        self._door = door
        self._link = link
        self._lease_s = lease_s

    @property
    def is_starting(self) -> bool:
        """Whether the next engine is on its way already."""
        return not self.engine.is_ready

    @property
    def coming_epoch(self) -> int:
        """The epoch of the next engine, as far as is known here."""
        return self.engine.statistics().epoch + 1

    async def start(self) -> None:
        """Has Ray asked for the actor, and returns at once."""
        self._link.start()

    async def wait_ready(self) -> None:
        """Waits until the engine takes requests. Raises EngineStartFailed when it cannot be served."""
        await self._link.wait_ready()

    async def identify(self) -> ActorFacts:
        """Asks the actor who it is. Raises whatever Ray does."""
        return await self._door.identify()

    async def restart(self) -> None:
        """Has the actor start its engine anew. Open requests fail. Returns when the old one is seen to have gone.

        Raises EngineUnavailable where the actor cannot be asked.
        """
        await self._restart(None)

    async def restart_drained(self, patience_s: float) -> bool:
        """The same, once no server has an open request in it. False where that takes longer: nothing is restarted."""
        return await self._restart(patience_s)

    async def _restart(self, drain_s: float | None) -> bool:
        gone = asyncio.Event()

        def note(_reason: str) -> None:
            gone.set()

        self.engine.on_lost.append(note)
        try:
            if not await self._door.restart_engine(drain_s):
                return False
            await wait_event(gone, RESTART_SEEN_S)
            return True
        except Exception as fault:
            raise EngineUnavailable(f"The engine's actor did not do it: {trouble_of(fault).words}.") from fault
        finally:
            self.engine.on_lost.remove(note)

    async def retire(self) -> None:
        """Ends the engine for good, and what it runs on. One that other servers use is left to them: it ends with the
        last that retires it.
        """
        await self._link.aclose()
        await self._door.retire(self._lease_s + LEAVE_S)

    async def aclose(self) -> None:
        """Lets go of the engine. Open requests fail; an engine that is this server's alone ends. Idempotent."""
        await self._link.aclose()
        await self._door.aclose()


def make_ray_keeper(
    name: str,
    settings: Settings,
    loaded: LoadedModel,
    logger: FilteringBoundLogger,
    poison: PoisonWatch | None = None,
    made_by_other: str | None = None,
) -> RayKeeper:
    """Returns who keeps an engine on Ray, not started. Call on the event loop. Raises LoadError.

    `made_by_other`: the name of an actor that another process of this server makes, and ends.
    """
    check_ray(settings)
    loop = asyncio.get_running_loop()
    engine = LocalEngine(loop.call_exception_handler, poison=poison)
    where = ClusterAddress(settings.ray.address, settings.ray.namespace)
    actor = made_by_other or actor_name(settings, name, lambda: entropy(SESSION_CHARS))
    is_guest = made_by_other is not None
    spec, needs = hosted_spec(settings, loaded), actor_needs(settings)
    door = RayDoor(where, actor, spec, needs, actor_class(settings), is_guest=is_guest)
    link = RayLink(
        actor,
        engine,
        door,
        link_settings(settings),
        mint=lambda: mint_id("session_", entropy(SESSION_CHARS)),
        take_note=note_to(logger),
    )
    keeper = RayKeeper(actor, engine, door, link, settings.ray.lease_s)
    keeper.can_flush = not is_vllm(inner_settings(settings))
    return keeper


def check_ray(settings: Settings) -> None:
    """Raises LoadError where the settings for Ray do not go together, or Ray is not there."""
    ray = settings.ray
    if ray.address.startswith("ray://"):
        raise LoadError("ray.address must be HOST:PORT of a cluster's head: Ray's client protocol carries no streams.")
    if ray.lease_s < MISSED_BEATS * ray.heartbeat_s:
        raise LoadError(f"ray.lease_s ({ray.lease_s:g}) must be at least {MISSED_BEATS} times ray.heartbeat_s.")
    if settings.server.workers > 1 and ray.address == LOCAL:
        raise LoadError(
            "Several workers need a Ray that each of them reaches: start one with `ray start --head`, and give its "
            "address with --ray-address auto (ray.address)."
        )
    if ray.address == LOCAL and ray.detached:
        raise LoadError("ray.detached needs a cluster that outlives this server: set ray.address.")
    actor_needs(settings)
    try:
        load_ray(is_local=ray.address == LOCAL)
    except RayMissing as error:
        raise LoadError(f"{error}.") from None


def actor_name(settings: Settings, name: str, take_entropy: Callable[[], bytes]) -> str:
    """Returns the actor's name: a detached one is found by it, one of our own bears a name that nobody else has."""
    shared = f"{settings.ray.name}-{name}"
    return shared if settings.ray.detached else mint_id(f"{shared}-", take_entropy())


def hosted_spec(settings: Settings, loaded: LoadedModel) -> HostedEngineSpec:
    """Returns what the actor builds."""
    inside = inner_settings(settings)
    if is_vllm(inside):
        from tidegate.cli.vllm_actor import vllm_in_actor

        return HostedEngineSpec(kind="vllm", lease_s=settings.ray.lease_s, settings=vllm_in_actor(inside))
    return HostedEngineSpec(
        kind=inside.engine.kind,
        lease_s=settings.ray.lease_s,
        process=_process_options(inside, loaded),
        stall_timeout_s=settings.engine.stall_timeout_s,
        restart_wait_s=settings.engine.restart_wait_s,
    )


def actor_class(settings: Settings) -> type[EngineActor]:
    """Returns what Ray makes an actor of."""
    if not is_vllm(inner_settings(settings)):
        return EngineActor
    from tidegate.cli.vllm_actor import VllmActor

    return VllmActor


def _process_options(inside: Settings, loaded: LoadedModel) -> EngineOptions:
    """Nothing of this machine goes into them: the engine's machine is another one."""
    options = msgspec.structs.replace(engine_options(inside, loaded), calibration_file=None)
    if options.backend != "llama":
        return options
    return msgspec.structs.replace(
        options,
        model_path=None if options.model_path is None else str(Path(options.model_path).absolute()),
        num_threads=options.num_threads or max(1, int(inside.engine.ray_num_cpus)),
        memory_bytes=inside.engine.ray_memory_bytes,
    )


def actor_needs(settings: Settings) -> ActorNeeds:
    """Returns what Ray is asked for. Raises LoadError naming the setting that cannot be read."""
    engine = settings.engine
    return ActorNeeds(
        num_cpus=engine.ray_num_cpus,
        num_gpus=engine.ray_num_gpus,
        memory_bytes=engine.ray_memory_bytes,
        resources=_amounts("engine.ray_resources", " ".join(engine.ray_resources)) if engine.ray_resources else {},
        bundles=tuple(_amounts("engine.ray_bundles", one) for one in engine.ray_bundles),
        strategy=engine.ray_strategy,
        max_restarts=engine.ray_max_restarts,
        is_detached=settings.ray.detached,
    )


def _amounts(setting: str, text: str) -> dict[str, float]:
    try:
        return read_amounts(text)
    except UnreadableAmount as error:
        raise LoadError(f"{setting} cannot be read: {error}.") from None


def link_settings(settings: Settings) -> LinkSettings:
    """Returns how the session with an actor is kept."""
    engine = settings.engine
    return LinkSettings(
        heartbeat_s=settings.ray.heartbeat_s,
        stall_timeout_s=engine.stall_timeout_s,
        first_wait_s=engine.restart_wait_s,
        max_wait_s=max(LinkSettings().max_wait_s, engine.restart_wait_s),
    )
