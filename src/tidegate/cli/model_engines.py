"""ModelEngines: the engines of one served model, as the rest of the server sees them: one engine, or a pool of them.

Engines join and leave a pool while the server runs. Where there is none, the one engine stays.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from tidegate.cli.engine_parts import EngineParts
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.settings import PoolSettings, Settings
from tidegate.engine.gauges import EngineStatus
from tidegate.engine.lane import ChooseLane, only_lane
from tidegate.engine.port import Engine, WatchedEngine
from tidegate.engines.pool.member_health import HealthRule
from tidegate.engines.pool.pool import EnginePool, PoolRule
from tidegate.engines.pool.pool_status import join_statuses
from tidegate.engines.pool.routing import Routing, RoutingRule
from tidegate.lifecycle.drain import Drain, DrainState
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.observability.observer import EngineChanged, Observer
from tidegate.serving.admin import EngineViews
from tidegate.serving.engine_rows import EngineRow, row_of_engine, row_of_member


@dataclass(frozen=True, slots=True)
class ModelEngines:
    """`engine` is what requests are given to. `parts` are the engines by name. There is a `pool` where there are
    several, or may be.
    """

    engine: Engine
    choose_lane: ChooseLane
    parts: EngineParts
    pool: EnginePool | None = None

    def join(self, name: str, engine: WatchedEngine) -> None:
        """Adds an engine to the pool, which there must be. Raises ValueError for a name that one has."""
        if self.pool is None:
            raise ValueError(f"the model has one engine and no pool that {name} could join")
        self.pool.join(name, engine)
        self.parts.add(name, engine)

    def leave(self, name: str) -> None:
        """Takes an engine out of the pool. Harmless for a name that none has."""
        if self.pool is not None and name in self.parts:
            self.pool.leave(name)
            self.parts.remove(name)


@dataclass(frozen=True, slots=True)
class ModelSite:
    """One served model. `settings.model` and `settings.engine` are those of its first engine."""

    settings: Settings
    loaded: LoadedModel
    engines: ModelEngines
    poison: PoisonWatch
    """What its engines hold against requests."""


def join_engines(
    parts: Mapping[str, WatchedEngine],
    settings: PoolSettings,
    now: Callable[[], float],
    *,
    is_pool: bool,
    is_watching: bool = False,
) -> ModelEngines:
    """Returns the engines as one. `now`: monotonic clock. `is_pool`: there are several, or may be; otherwise `parts` is
    one. `is_watching`: other processes give them requests.
    """
    if not is_pool:
        (engine,) = parts.values()
        return ModelEngines(engine, only_lane(engine), EngineParts(parts))
    pool = EnginePool(pool_rule(settings, needs_proof=not is_watching), now)
    for name, engine in parts.items():
        pool.join(name, engine)
    return ModelEngines(pool, pool.choose_lane, EngineParts(parts), pool)


def pool_rule(settings: PoolSettings, *, needs_proof: bool = True) -> PoolRule:
    """Returns the rules of a pool."""
    return PoolRule(
        routing=RoutingRule(Routing(settings.routing), settings.load_factor),
        health=HealthRule(
            num_faults=settings.eject_after,
            first_wait_s=settings.eject_wait_s,
            max_wait_s=max(settings.eject_wait_s, settings.eject_max_wait_s),
            needs_proof=needs_proof,
        ),
        max_moves=settings.max_moves,
        is_rolling=settings.rolling,
    )


def status_of(sites: tuple[ModelSite, ...]) -> EngineStatus:
    """Returns the accounts of all engines; ready when every model has an engine that is."""
    statuses = [site.engines.engine.statistics() for site in sites]
    return statuses[0] if len(statuses) == 1 else join_statuses(statuses)


def engine_views(sites: tuple[ModelSite, ...]) -> EngineViews:
    """Returns what operators see of the engines."""
    return EngineViews(lambda: status_of(sites), lambda: [row for site in sites for row in engine_rows(site)])


def engine_rows(site: ModelSite) -> list[EngineRow]:
    """Returns a row for each engine of a model."""
    served, engines = site.loaded.served, site.engines
    if engines.pool is not None:
        return [row_of_member(one, served) for one in engines.pool.members()]
    return [row_of_engine(name, engine.statistics(), served) for name, engine in engines.parts.items()]


def has_rows_of_engines(sites: tuple[ModelSite, ...]) -> bool:
    """Says whether there is more to tell of the engines than of all together: there are several, or may be."""
    return len(sites) > 1 or sites[0].engines.pool is not None


def poison_of(sites: tuple[ModelSite, ...]) -> dict[str, PoisonWatch]:
    """Returns what is held against requests, by the first name of their model."""
    return {site.loaded.served.name: site.poison for site in sites}


def report_engines(sites: tuple[ModelSite, ...], observer: Observer, drain: Drain) -> None:
    """Tells the observer each time that an engine becomes ready or goes away, except at our own end and its own."""
    has_several = has_rows_of_engines(sites)
    for site in sites:
        site.engines.parts.each(partial(_report_engine, site.engines.parts, observer, drain, has_several))


def _report_engine(
    parts: EngineParts, observer: Observer, drain: Drain, has_several: bool, name: str, engine: WatchedEngine
) -> None:
    def tell(*, reason: str | None) -> None:
        if drain.state is DrainState.STOPPED or name not in parts:
            return
        status = engine.statistics()
        observer.engine_changed(
            EngineChanged(
                is_ready=reason is None,
                epoch=status.epoch,
                num_restarts=status.num_restarts,
                process_id=status.process_id,
                reason=reason,
                engine=name if has_several else None,
            )
        )

    engine.on_ready.append(lambda _greeting: tell(reason=None))
    engine.on_lost.append(lambda reason: tell(reason=reason))
