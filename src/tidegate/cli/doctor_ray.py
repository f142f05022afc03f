"""The part of `tidegate doctor` that looks at Ray: whether it is here, reachable, and has what an engine needs."""

import asyncio
import io
import logging
from types import ModuleType

from tidegate.cli.finding import Finding, ok, problem, warning
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_loading import LoadedModel, engine_fault
from tidegate.cli.ray_keeper import actor_needs, check_ray, make_ray_keeper
from tidegate.cli.settings import Settings
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.ray.cluster import CLUSTER, LOCAL, ClusterAddress, call_aside, load_ray
from tidegate.engines.ray.ray_trouble import trouble_of
from tidegate.observability.logs import LogFormat, LogSettings, build_logger

_SUBJECT = "Ray"
_PAGE = "docs/ray.md says what is needed"
_START_TIMEOUT_S = 180.0

_log = logging.getLogger(__name__)


def look_at_ray(settings: Settings, loaded: LoadedModel, *, starts_engine: bool) -> Finding:
    """Whether engines can be placed. With `starts_engine` one is placed, and ended when it is ready."""
    try:
        check_ray(settings)
    except LoadError as error:
        return problem(_SUBJECT, str(error), _PAGE)
    shown = f"Ray {load_ray().__version__}"
    if starts_engine:
        return asyncio.run(_start(settings, loaded, shown))
    if settings.ray.address == LOCAL:
        return ok(_SUBJECT, f"{shown}; `serve` starts one of its own on this machine")
    return _look_at_cluster(settings, shown)


def _look_at_cluster(settings: Settings, shown: str) -> Finding:
    where = settings.ray.address
    try:
        ray = asyncio.run(_attach(ClusterAddress(where, settings.ray.namespace)))
    except Exception as fault:
        _log.debug("Ray said: %s", fault)
        return problem(
            _SUBJECT, f"{shown} at {where}: {trouble_of(fault).words}", "start the cluster, or correct ray.address"
        )
    try:
        total: dict[str, float] = ray.cluster_resources()
        num_nodes = sum(1 for node in ray.nodes() if node["Alive"])
    finally:
        CLUSTER.release()
    lacking = lacking_resources(settings, total)
    words = f"{shown} at {where}: {num_nodes} machines, {total.get('CPU', 0):g} CPUs, {total.get('GPU', 0):g} GPUs"
    if lacking:
        return warning(_SUBJECT, f"{words}; it has never enough {', '.join(lacking)}", "add machines, or ask for less")
    return ok(_SUBJECT, words)


def lacking_resources(settings: Settings, total: dict[str, float]) -> list[str]:
    """Returns the names of resources of which all engines together need more than the cluster has."""
    needs = actor_needs(settings)
    parts = needs.bundles or ({"CPU": needs.num_cpus, "GPU": needs.num_gpus, **needs.resources},)
    wanted: dict[str, float] = {}
    for part in parts:
        for name, amount in part.items():
            wanted[name] = wanted.get(name, 0.0) + amount * settings.engine.replicas
    return sorted(name for name, amount in wanted.items() if amount > total.get(name, 0.0))


async def _attach(where: ClusterAddress) -> ModuleType:
    return await call_aside(lambda: CLUSTER.attach(where))


async def _start(settings: Settings, loaded: LoadedModel, shown: str) -> Finding:
    logger = build_logger(LogSettings("error", LogFormat.JSON), io.StringIO(), lambda: 0.0)
    keeper = make_ray_keeper("doctor", settings, loaded, logger)
    try:
        async with asyncio.timeout(_START_TIMEOUT_S):
            await keeper.start()
            await keeper.wait_ready()
        model = keeper.engine.statistics().model
    except EngineStartFailed as error:
        return problem(_SUBJECT, str(error), _PAGE)
    except TimeoutError:
        condition = keeper.engine.statistics().condition
        return problem(_SUBJECT, f"no engine within {_START_TIMEOUT_S:g} s: {condition}", _PAGE)
    finally:
        await keeper.retire()
    fault = engine_fault(loaded, model)
    if fault is not None:
        return problem(_SUBJECT, fault, "change it in tidegate.toml; `tidegate config` shows where each value is from")
    build = "an engine" if model is None else model.build
    return ok(_SUBJECT, f"{shown}: {build} was placed and became ready")
