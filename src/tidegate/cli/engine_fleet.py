"""EngineFleet: all engines of a server, started, waited for and ended as one."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_keeper import EngineKeeper, make_keeper
from tidegate.cli.engine_specs import ModelSpec
from tidegate.cli.model_engines import ModelSite, join_engines
from tidegate.cli.model_loading import LoadedModel
from tidegate.lifecycle.poison import PoisonWatch


class EngineFleet:
    """Belongs to one event loop. `loaded` are the models of `specs`, in their order. `now`: monotonic clock."""

    def __init__(
        self,
        specs: Sequence[ModelSpec],
        loaded: Sequence[LoadedModel],
        logger: FilteringBoundLogger,
        now: Callable[[], float],
    ) -> None:
        self.keepers: dict[str, EngineKeeper] = {}
        sites = []
        num_engines = sum(len(spec.engines) for spec in specs)
        for spec, model in zip(specs, loaded, strict=True):
            poison = PoisonWatch()
            for engine in spec.engines:
                own = logger if num_engines == 1 else logger.bind(engine=engine.name)
                self.keepers[engine.name] = make_keeper(engine, model, own, poison)
            parts = {engine.name: self.keepers[engine.name].engine for engine in spec.engines}
            sites.append(ModelSite(spec.settings, model, join_engines(parts, spec.settings.pool, now)))
        self.sites = tuple(sites)
        self.failures: dict[str, Exception] = {}
        """Engines that have never become ready and were given up, and why."""

    @property
    def first(self) -> EngineKeeper:
        """The first engine of the first model."""
        return next(iter(self.keepers.values()))

    @property
    def sockets(self) -> dict[str, Path]:
        """Where other server processes reach the engines that run here, by their names."""
        paths = {name: keeper.socket_path for name, keeper in self.keepers.items()}
        return {name: path for name, path in paths.items() if path is not None}

    async def start(self) -> None:
        """Starts all engines and returns at once."""
        for keeper in self.keepers.values():
            await keeper.start()

    async def wait_ready(self) -> None:
        """Waits until each engine takes requests or was given up. Raises why, for a model that has none.

        What else was given up is in `failures`.
        """
        names = list(self.keepers)
        outcomes = await asyncio.gather(*(self.keepers[name].wait_ready() for name in names), return_exceptions=True)
        self.failures = {name: one for name, one in zip(names, outcomes, strict=True) if isinstance(one, Exception)}
        for site in self.sites:
            failed = [self.failures[name] for name in site.engines.parts if name in self.failures]
            if len(failed) == len(site.engines.parts):
                raise failed[0]

    @property
    def conflict(self) -> str | None:
        """Why engines of one name cannot be served together, and what to do; None where they can."""
        pools = [site.engines.pool for site in self.sites]
        conflicts = [pool.conflict() for pool in pools if pool is not None]
        return next((words for words in conflicts if words is not None), None)

    async def aclose(self) -> None:
        """Ends all engines, at the same time. Open requests fail. Idempotent."""
        await asyncio.gather(*(keeper.aclose() for keeper in self.keepers.values()))
