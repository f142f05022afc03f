"""Who keeps an engine: a supervisor of a process of ours, a watch over another's, or a tie to one on Ray.

The one table of what the kinds of engine need. A new kind is a new branch here and in `worker_engine.py` (how it is
kept and reached), in `model_loading.py` (its tokenizer) and in `settings.py` (its name).
"""

from typing import TYPE_CHECKING, Protocol, TypeAlias, Union, runtime_checkable

import msgspec
from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_acts import Acts, EngineActs, RemoteActs, Restartable
from tidegate.cli.engine_log import relay_to
from tidegate.cli.engine_specs import EngineSpec
from tidegate.cli.inner_engine import is_on_ray
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.remote_settings import is_remote, is_vllm
from tidegate.cli.wiring import engine_options, supervisor_settings
from tidegate.engine.options import EngineOptions
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.local.supervisor import Supervisor
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.machine import available_bytes, usable_processors

if TYPE_CHECKING:  # what only engines on other machines need is imported with them
    from tidegate.cli.ray_keeper import RayKeeper
    from tidegate.cli.remote_keeper import RemoteKeeper
    from tidegate.cli.vllm_keeper import VllmKeeper

EngineKeeper: TypeAlias = Union[Supervisor, "RemoteKeeper", "RayKeeper", "VllmKeeper"]


def make_keeper(
    spec: EngineSpec, loaded: LoadedModel, logger: FilteringBoundLogger, poison: PoisonWatch | None = None
) -> EngineKeeper:
    """Returns who keeps an engine, not started. Call on the event loop. Raises LoadError.

    Engines of one pool share one `poison`: a request that one of them died with may be given to the next.
    """
    if is_remote(spec.settings):
        from tidegate.cli.remote_keeper import RemoteKeeper

        return RemoteKeeper(spec.settings, loaded, logger, poison)
    if is_vllm(spec.settings):
        from tidegate.cli.vllm_keeper import VllmKeeper

        return VllmKeeper(spec.settings, loaded, logger, poison)
    if is_on_ray(spec.settings):
        from tidegate.cli.ray_keeper import make_ray_keeper

        return make_ray_keeper(spec.name, spec.settings, loaded, logger, poison)
    return Supervisor(
        shared_options(spec, loaded), supervisor_settings(spec.settings), write_log=relay_to(logger), poison=poison
    )


@runtime_checkable
class Retirable(Protocol):
    """A keeper whose `aclose` leaves the engine to others that may use it."""

    async def retire(self) -> None:
        """Ends the engine for good, unless others use it."""


class KeeperFactory:
    """Implements `MemberFactory` for one model, for every kind of engine. `poison` is what its engines share."""

    def __init__(self, loaded: LoadedModel, logger: FilteringBoundLogger, poison: PoisonWatch) -> None:
        self._loaded = loaded
        self._logger = logger
        self._poison = poison

    def make(self, spec: EngineSpec) -> EngineKeeper:
        """See `MemberFactory.make`."""
        return make_keeper(spec, self._loaded, self._logger.bind(engine=spec.name), self._poison)

    async def retire(self, kept: EngineKeeper) -> None:
        """See `MemberFactory.retire`. What runs for us ends; an engine that others started is let go."""
        if isinstance(kept, Retirable):
            await kept.retire()
        else:
            await kept.aclose()


def make_acts(keeper: EngineKeeper) -> Acts:
    """Returns what an operator can do to the engine."""
    if isinstance(keeper, Restartable) and isinstance(keeper.engine, LocalEngine):
        return EngineActs(keeper, keeper.engine)
    own = getattr(keeper, "acts", None)
    return RemoteActs() if own is None else own


def shared_options(spec: EngineSpec, loaded: LoadedModel) -> EngineOptions:
    """Returns what an engine process is told: replicas of one model share processors and memory evenly."""
    options = engine_options(spec.settings, loaded)
    if max(spec.num_sharing, spec.num_to_come) == 1 or options.backend != "llama":
        return options
    free_bytes = available_bytes()
    return msgspec.structs.replace(
        options,
        num_threads=options.num_threads or max(1, usable_processors() // spec.num_sharing),
        memory_bytes=None if free_bytes is None else free_bytes // spec.num_to_come,
        num_sharing=spec.num_sharing,
    )
