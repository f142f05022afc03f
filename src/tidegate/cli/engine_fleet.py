"""EngineFleet: all engines of a server, started, waited for and ended as one; single ones join it and part from it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_keeper import EngineKeeper, KeeperFactory, make_keeper
from tidegate.cli.engine_specs import ModelSpec, further_engine
from tidegate.cli.model_engines import ModelSite, join_engines
from tidegate.cli.model_loading import LoadedModel, engine_fault
from tidegate.cli.remote_settings import check_further
from tidegate.cli.worker_spec import EngineTie, Wish
from tidegate.engines.pool.member_states import MemberState
from tidegate.errors import RouteNotFound
from tidegate.lifecycle.poison import PoisonWatch

_WISHES: dict[MemberState, Wish] = {MemberState.DRAINING: "draining", MemberState.RETIRING: "retiring"}
LATE_START_S = 30.0
"""How long the start of a server waits for further engines once every model has one."""


class EngineFleet:
    """Belongs to one event loop. `loaded` are the models of `specs`, in their order. `now`: monotonic clock."""

    def __init__(
        self,
        specs: Sequence[ModelSpec],
        loaded: Sequence[LoadedModel],
        logger: FilteringBoundLogger,
        now: Callable[[], float],
        *,
        is_watching: bool = False,
    ) -> None:
        """`is_watching`: other processes give the engines their requests."""
        self.keepers: dict[str, EngineKeeper] = {}
        self._urls: dict[str, str] = {}
        self._specs: dict[str, ModelSpec] = {}
        self._factories: dict[str, KeeperFactory] = {}
        sites = []
        num_engines = sum(len(spec.engines) for spec in specs)
        for spec, model in zip(specs, loaded, strict=True):
            poison = PoisonWatch()
            for engine in spec.engines:
                own = logger if num_engines == 1 else logger.bind(engine=engine.name)
                self.keepers[engine.name] = make_keeper(engine, model, own, poison)
            parts = {engine.name: self.keepers[engine.name].engine for engine in spec.engines}
            engines = join_engines(parts, spec.settings.pool, now, is_pool=spec.is_pool, is_watching=is_watching)
            sites.append(ModelSite(spec.settings, model, engines, poison))
            self._specs[model.served.name] = spec
            self._factories[model.served.name] = KeeperFactory(model, logger, poison)
        self.sites = tuple(sites)
        self.missing: dict[str, str | None] = {}
        """Engines that were not ready when the server was, and why."""

    @property
    def first(self) -> EngineKeeper:
        """The first engine of the first model."""
        return next(iter(self.keepers.values()))

    def site_of(self, name: str) -> ModelSite:
        """Returns the model that an engine serves. Raises RouteNotFound."""
        for site in self.sites:
            if name in site.engines.parts:
                return site
        raise RouteNotFound("No engine has this name.")

    def spec_of(self, site: ModelSite) -> ModelSpec:
        """Returns what the settings say of a model's engines."""
        return self._specs[site.loaded.served.name]

    def ties(self) -> tuple[EngineTie, ...]:
        """Returns how other server processes reach each engine, and what is wished of it."""
        return tuple(self._tie(site, name) for site in self.sites for name in site.engines.parts)

    def _tie(self, site: ModelSite, name: str) -> EngineTie:
        keeper, pool = self.keepers[name], site.engines.pool
        wish: Wish = "in" if pool is None else _WISHES.get(pool.member(name).health.state, "in")
        return EngineTie(
            name,
            site.loaded.served.name,
            None if keeper.socket_path is None else str(keeper.socket_path),
            self._urls.get(name),
            wish,
            getattr(keeper, "actor", None),
        )

    def join(self, site: ModelSite, url: str | None = None) -> str:
        """Makes one more engine of a model, which is not started yet; returns its name. Raises LoadError."""
        model = site.loaded.served.name
        spec = further_engine(self._specs[model], list(self.keepers), url)
        check_further(spec.settings, url)
        keeper = self._factories[model].make(spec)
        self.keepers[spec.name] = keeper
        if url is not None:
            self._urls[spec.name] = url
        site.engines.join(spec.name, keeper.engine)
        return spec.name

    async def part(self, site: ModelSite, name: str) -> None:
        """Ends an engine for good. What it had fails. Harmless for a name that none has."""
        site.engines.leave(name)
        keeper = self.keepers.get(name)
        if keeper is not None:
            await self._factories[site.loaded.served.name].retire(keeper)
        self.keepers.pop(name, None)
        self._urls.pop(name, None)

    async def start(self) -> None:
        """Starts all engines and returns at once."""
        for keeper in self.keepers.values():
            await keeper.start()

    async def wait_ready(self) -> None:
        """Waits until each engine takes requests or was given up. Raises why, for a model that has none.

        Once every model has an engine, the others have `LATE_START_S` left. Who is missing is in `missing`.
        """
        waits = {name: asyncio.create_task(keeper.wait_ready()) for name, keeper in self.keepers.items()}
        try:
            pending = set(waits.values())
            while pending:
                timeout_s = LATE_START_S if all(self._has_engine(site, waits) for site in self.sites) else None
                done, pending = await asyncio.wait(pending, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    break
                self._check_failed(waits)
        finally:
            for wait in waits.values():
                wait.cancel()
            await asyncio.gather(*waits.values(), return_exceptions=True)
        self.missing = {name: _reason(wait) for name, wait in waits.items() if _reason(wait) is not None}

    def _has_engine(self, site: ModelSite, waits: Mapping[str, asyncio.Task[None]]) -> bool:
        return any(waits[name].done() and waits[name].exception() is None for name in site.engines.parts)

    def _check_failed(self, waits: Mapping[str, asyncio.Task[None]]) -> None:
        """Raises why, where every engine of a model was given up."""
        for site in self.sites:
            faults = [waits[name].exception() if waits[name].done() else None for name in site.engines.parts]
            if None not in faults:
                raise next(fault for fault in faults if fault is not None)

    @property
    def conflict(self) -> str | None:
        """Why engines of one name cannot be served together, and what to do; None where they can."""
        pools = [site.engines.pool for site in self.sites]
        conflicts = [pool.conflict() for pool in pools if pool is not None]
        return next((words for words in conflicts if words is not None), None)

    @property
    def fault(self) -> str | None:
        """What keeps engines that have started from being served as the settings say; None if nothing."""
        faults = [engine_fault(site.loaded, site.engines.engine.statistics().model) for site in self.sites]
        return self.conflict or next((fault for fault in faults if fault is not None), None)

    async def aclose(self) -> None:
        """Ends all engines, at the same time. Open requests fail. Idempotent."""
        await asyncio.gather(*(keeper.aclose() for keeper in self.keepers.values()))


def _reason(wait: asyncio.Task[None]) -> str | None:
    if wait.cancelled():
        return "it is still starting"
    fault = wait.exception()
    return None if fault is None else str(fault)
