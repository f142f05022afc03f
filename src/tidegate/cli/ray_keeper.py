"""RayKeeper: what the server does with an engine on Ray, in the shape of the supervisor of one."""

import asyncio
import contextlib
from collections.abc import Callable

import msgspec
from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_log import note_to
from tidegate.cli.inner_engine import inner_settings
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.ray_section import UnreadableAmount, read_amounts
from tidegate.cli.settings import Settings
from tidegate.cli.wiring import engine_options
from tidegate.engine.options import EngineOptions
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.ray.actor_door import ActorDoor, ActorFacts
from tidegate.engines.ray.actor_spec import ActorNeeds, HostedEngineSpec
from tidegate.engines.ray.cluster import LOCAL, ClusterAddress, RayMissing, load_ray
from tidegate.engines.ray.ray_door import RayDoor
from tidegate.engines.ray.ray_link import LinkSettings, RayLink
from tidegate.ids import mint_id
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.system import entropy

SESSION_CHARS = 16
RESTART_SEEN_S = 30.0
"""How long a restart may take until the old engine is seen to have gone."""
MISSED_BEATS = 3
"""A lease must outlast so many signs of life."""


class RayKeeper:
    """Belongs to one event loop. The engine's process is Ray's affair: there is no socket of it here."""

    process_id: None = None
    socket_path: None = None

    def __init__(self, name: str, engine: LocalEngine, door: ActorDoor, link: RayLink) -> None:
        self.name = name
        self.engine = engine
        self._door = door
        self._link = link

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
        """Has the actor start its engine anew. Open requests fail. Returns when the old one is seen to have gone."""
        gone = asyncio.Event()

        def note(_reason: str) -> None:
            gone.set()

        self.engine.on_lost.append(note)
        try:
            with contextlib.suppress(Exception):
                await self._door.restart_engine()
                await asyncio.wait_for(gone.wait(), RESTART_SEEN_S)
        finally:
            self.engine.on_lost.remove(note)

    async def retire(self, drain_s: float) -> None:
        """Ends the engine for good, whoever else uses it: it takes nothing new, and has `drain_s` to finish."""
        await self._door.retire(drain_s)
        await self.aclose()

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
) -> RayKeeper:
    """Returns who keeps an engine on Ray, not started. Call on the event loop. Raises LoadError."""
    check_ray(settings)
    loop = asyncio.get_running_loop()
    engine = LocalEngine(loop.call_exception_handler, poison=poison)
    where = ClusterAddress(settings.ray.address, settings.ray.namespace)
    actor = actor_name(settings, name, lambda: entropy(SESSION_CHARS))
    door = RayDoor(where, actor, hosted_spec(settings, loaded), actor_needs(settings))
    link = RayLink(
        actor,
        engine,
        door,
        link_settings(settings),
        mint=lambda: mint_id("session_", entropy(SESSION_CHARS)),
        take_note=note_to(logger),
    )
    return RayKeeper(name, engine, door, link)


def check_ray(settings: Settings) -> None:
    """Raises LoadError where the settings for Ray do not go together, or Ray is not there."""
    ray = settings.ray
    if ray.address.startswith("ray://"):
        raise LoadError("ray.address must be HOST:PORT of a cluster's head: Ray's client protocol carries no streams.")
    if ray.lease_s < MISSED_BEATS * ray.heartbeat_s:
        raise LoadError(f"ray.lease_s ({ray.lease_s:g}) must be at least {MISSED_BEATS} times ray.heartbeat_s.")
    if settings.server.workers > 1 and (ray.address == LOCAL or not ray.detached):
        raise LoadError(
            "Several workers share engines on Ray by name: ray.address must name a cluster, and ray.detached be true."
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
    return HostedEngineSpec(
        kind=inside.engine.kind,
        lease_s=settings.ray.lease_s,
        process=_process_options(inside, loaded),
        stall_timeout_s=settings.engine.stall_timeout_s,
        restart_wait_s=settings.engine.restart_wait_s,
    )


def _process_options(inside: Settings, loaded: LoadedModel) -> EngineOptions:
    """Nothing of this machine goes into them: the engine's machine is another one."""
    options = msgspec.structs.replace(engine_options(inside, loaded), calibration_file=None)
    if options.backend != "llama":
        return options
    return msgspec.structs.replace(
        options,
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
