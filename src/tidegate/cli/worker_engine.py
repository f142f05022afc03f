"""How a worker reaches an engine: over the socket of the one that its parent keeps, on another machine, or on Ray."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Union

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_specs import EngineSpec
from tidegate.cli.inner_engine import is_on_ray
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.worker_spec import EngineTie
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.local.link import EngineLink
from tidegate.lifecycle.poison import PoisonWatch

if TYPE_CHECKING:
    from tidegate.cli.ray_keeper import RayKeeper
    from tidegate.cli.remote_keeper import RemoteKeeper


class LinkedEngine:
    """`start`, in the end `aclose`. Belongs to one event loop. Engines of one pool share one `poison`."""

    def __init__(self, socket_path: Path, poison: PoisonWatch | None = None) -> None:
        self.engine = LocalEngine(asyncio.get_running_loop().call_exception_handler, poison=poison)
        self._link = EngineLink(self.engine, socket_path)

    async def start(self) -> None:
        """Begins to dial."""
        self._link.start()

    async def aclose(self) -> None:
        """Hangs up. Idempotent."""
        await self._link.aclose()


def make_worker_engine(
    spec: EngineSpec,
    tie: EngineTie,
    loaded: LoadedModel,
    logger: FilteringBoundLogger,
    poison: PoisonWatch | None = None,
) -> Union[LinkedEngine, "RemoteKeeper", "RayKeeper"]:
    """Returns the way to an engine, not started. Call on the event loop. Raises LoadError."""
    if is_on_ray(spec.settings):
        from tidegate.cli.ray_keeper import make_ray_keeper

        return make_ray_keeper(spec.name, spec.settings, loaded, logger, poison, made_by_other=tie.actor)
    if tie.socket is None:
        from tidegate.cli.remote_keeper import RemoteKeeper

        return RemoteKeeper(spec.settings, loaded, logger, poison)
    return LinkedEngine(Path(tie.socket), poison)
