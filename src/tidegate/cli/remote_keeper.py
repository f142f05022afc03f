"""RemoteKeeper: what the server does with an engine that it did not start, in the shape of the supervisor of one."""

from structlog.typing import FilteringBoundLogger

from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.remote_engine import make_watch
from tidegate.cli.settings import Settings
from tidegate.engines.remote.client import RemoteEngine
from tidegate.lifecycle.poison import PoisonWatch


class RemoteKeeper:
    """Belongs to one event loop. The engine is nobody's child: it has no process and no socket here."""

    process_id: None = None
    socket_path: None = None
    acts: None = None
    """What an operator could do to it is done where it runs."""

    def __init__(
        self,
        settings: Settings,
        loaded: LoadedModel,
        logger: FilteringBoundLogger,
        poison: PoisonWatch | None = None,
    ) -> None:
        self._watch = make_watch(
            settings,
            loaded.served,
            has_compiler=loaded.grammar.compiler is not None,
            take_note=lambda note: logger.warning("engine note", note=note),
            poison=poison,
        )

    @property
    def engine(self) -> RemoteEngine:
        return self._watch.engine

    async def start(self) -> None:
        """Begins to look for the engine."""
        self._watch.start()

    async def wait_ready(self) -> None:
        """Waits until the engine takes requests. Raises RemoteStartFailed when it cannot be served."""
        await self._watch.wait_ready()

    async def aclose(self) -> None:
        """Lets go of the engine. Open requests fail. Idempotent."""
        await self._watch.aclose()
