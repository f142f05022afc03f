"""Who keeps the engine: a supervisor of a process of ours, or a watch over one on another machine."""

from typing import TYPE_CHECKING, TypeAlias, Union

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_acts import Acts, EngineActs, RemoteActs
from tidegate.cli.engine_log import relay_to
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.remote_settings import is_remote
from tidegate.cli.settings import Settings
from tidegate.cli.wiring import engine_options, supervisor_settings
from tidegate.engines.local.supervisor import Supervisor

if TYPE_CHECKING:  # what only engines on other machines need is imported with them
    from tidegate.cli.remote_keeper import RemoteKeeper

EngineKeeper: TypeAlias = Union[Supervisor, "RemoteKeeper"]


def make_keeper(settings: Settings, loaded: LoadedModel, logger: FilteringBoundLogger) -> EngineKeeper:
    """Returns who keeps the engine that the settings choose, not started. Call on the event loop. Raises LoadError."""
    if is_remote(settings):
        from tidegate.cli.remote_keeper import RemoteKeeper

        return RemoteKeeper(settings, loaded, logger)
    return Supervisor(engine_options(settings, loaded), supervisor_settings(settings), write_log=relay_to(logger))


def make_acts(keeper: EngineKeeper) -> Acts:
    """Returns what an operator can do to the engine."""
    return EngineActs(keeper) if isinstance(keeper, Supervisor) else RemoteActs()
