"""RemoteKeeper: what the server does with an engine that it did not start; an operator's acts on it are done there."""

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_log import note_to
from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.remote_engine import make_watch
from tidegate.cli.settings import Settings
from tidegate.cli.watch_keeper import WatchKeeper
from tidegate.lifecycle.poison import PoisonWatch


class RemoteKeeper(WatchKeeper):
    """The engine is nobody's child: it has no process here."""

    def __init__(
        self,
        settings: Settings,
        loaded: LoadedModel,
        logger: FilteringBoundLogger,
        poison: PoisonWatch | None = None,
    ) -> None:
        has_compiler = loaded.grammar.compiler is not None
        super().__init__(
            make_watch(settings, loaded.served, has_compiler=has_compiler, take_note=note_to(logger), poison=poison)
        )
