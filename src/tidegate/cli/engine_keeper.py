"""Who keeps an engine: a supervisor of a process of ours. The one table of what the kinds of engine need.

A new kind of engine is a new branch here, in `model_loading.py` (its tokenizer) and in `settings.py` (its name).
"""

import msgspec
from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_acts import Acts, EngineActs
from tidegate.cli.engine_log import relay_to
from tidegate.cli.engine_specs import EngineSpec
from tidegate.cli.machine_facts import available_bytes, usable_processors
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.wiring import engine_options, supervisor_settings
from tidegate.engine.options import EngineOptions
from tidegate.engines.local.supervisor import Supervisor
from tidegate.lifecycle.poison import PoisonWatch

EngineKeeper = Supervisor


def make_keeper(
    spec: EngineSpec, loaded: LoadedModel, logger: FilteringBoundLogger, poison: PoisonWatch | None = None
) -> EngineKeeper:
    """Returns who keeps an engine, not started. Call on the event loop.

    Engines of one pool share one `poison`: a request that one of them died with may be given to the next.
    """
    return Supervisor(
        shared_options(spec, loaded), supervisor_settings(spec.settings), write_log=relay_to(logger), poison=poison
    )


def make_acts(keeper: EngineKeeper) -> Acts:
    """Returns what an operator can do to the engine."""
    return EngineActs(keeper)


def shared_options(spec: EngineSpec, loaded: LoadedModel) -> EngineOptions:
    """Returns what an engine process is told: replicas of one model share processors and memory evenly."""
    options = engine_options(spec.settings, loaded)
    if spec.num_sharing == 1 or options.backend != "llama":
        return options
    free_bytes = available_bytes()
    return msgspec.structs.replace(
        options,
        num_threads=options.num_threads or max(1, usable_processors() // spec.num_sharing),
        memory_bytes=None if free_bytes is None else free_bytes // spec.num_sharing,
    )
