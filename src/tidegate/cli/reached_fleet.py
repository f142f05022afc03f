"""ReachedFleet: the engines of a server as one of its worker processes has them: connected to, kept alive elsewhere."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, TypeAlias, Union

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_specs import ModelSpec, named_engine
from tidegate.cli.model_engines import ModelSite, join_engines
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.worker_engine import LinkedEngine, make_worker_engine
from tidegate.cli.worker_spec import EngineTie
from tidegate.engines.pool.pool import EnginePool
from tidegate.lasting_task import start_lasting
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.system import SystemClock

if TYPE_CHECKING:
    from tidegate.cli.ray_keeper import RayKeeper
    from tidegate.cli.remote_keeper import RemoteKeeper

WorkerTie: TypeAlias = Union[LinkedEngine, "RemoteKeeper", "RayKeeper"]


class ReachedFleet:
    """Belongs to one event loop. `ties` say how each engine is reached; `settle` is for when that has changed."""

    def __init__(
        self,
        specs: Sequence[ModelSpec],
        loaded: Sequence[LoadedModel],
        ties: Sequence[EngineTie],
        logger: FilteringBoundLogger,
    ) -> None:
        self._logger = logger
        self._specs = {model.served.name: spec for spec, model in zip(specs, loaded, strict=True)}
        self._poison = {name: PoisonWatch() for name in self._specs}
        self._ties: dict[str, WorkerTie] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        sites = []
        for spec, model in zip(specs, loaded, strict=True):
            parts = {one.name: self._reach(one, model).engine for one in ties if one.model == model.served.name}
            engines = join_engines(parts, spec.settings.pool, SystemClock().now, is_pool=spec.is_pool)
            sites.append(ModelSite(spec.settings, model, engines, self._poison[model.served.name]))
        self.sites = tuple(sites)
        self._wish(ties)

    async def start(self) -> None:
        """Begins to dial."""
        for tie in self._ties.values():
            await tie.start()

    def settle(self, ties: Sequence[EngineTie]) -> None:
        """Reaches the engines that joined, lets go of those that left, and does what is wished of each."""
        wanted = {one.name: one for one in ties}
        for site in self.sites:
            for name in [name for name in site.engines.parts if name not in wanted]:
                site.engines.leave(name)
                self._do(self._ties.pop(name).aclose())
        for one in ties:
            if one.name not in self._ties:
                site = next(site for site in self.sites if site.loaded.served.name == one.model)
                tie = self._reach(one, site.loaded)
                site.engines.join(one.name, tie.engine)
                self._do(tie.start())
        self._wish(ties)

    async def aclose(self) -> None:
        """Hangs up. Open requests fail. Idempotent."""
        for tie in self._ties.values():
            await tie.aclose()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _reach(self, one: EngineTie, model: LoadedModel) -> WorkerTie:
        spec = named_engine(self._specs[one.model], one.name, one.url)
        tie = make_worker_engine(spec, one, model, self._logger, self._poison[one.model])
        self._ties[one.name] = tie
        return tie

    def _wish(self, ties: Sequence[EngineTie]) -> None:
        pools = {site.loaded.served.name: site.engines.pool for site in self.sites}
        for one in ties:
            pool = pools[one.model]
            if pool is not None:
                _follow(pool, one)

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = start_lasting(work, "way to the engines")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _follow(pool: EnginePool, one: EngineTie) -> None:
    match one.wish:
        case "draining":
            pool.drain(one.name)
        case "retiring":
            pool.retire(one.name)
        case "in":
            pool.restore(one.name)
