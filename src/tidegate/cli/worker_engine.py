"""How a worker process reaches the engine: over the socket of the one that its parent keeps, or on another machine."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Union

from structlog.typing import FilteringBoundLogger

from tidegate.cli.model_loading import LoadedModel
from tidegate.cli.worker_spec import WorkerSpec
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.local.link import EngineLink

if TYPE_CHECKING:
    from tidegate.cli.remote_keeper import RemoteKeeper


class LinkedEngine:
    """`start`, in the end `aclose`. Belongs to one event loop."""

    def __init__(self, socket_path: Path) -> None:
        self.engine = LocalEngine(asyncio.get_running_loop().call_exception_handler)
        self._link = EngineLink(self.engine, socket_path)

    async def start(self) -> None:
        """Begins to dial."""
        self._link.start()

    async def aclose(self) -> None:
        """Hangs up. Idempotent."""
        await self._link.aclose()


def make_worker_engine(
    spec: WorkerSpec, loaded: LoadedModel, logger: FilteringBoundLogger
) -> Union[LinkedEngine, "RemoteKeeper"]:
    """Returns the way to the engine, not started. Call on the event loop. Raises LoadError."""
    if spec.engine_socket is None:
        from tidegate.cli.remote_keeper import RemoteKeeper

        return RemoteKeeper(spec.settings, loaded, logger)
    return LinkedEngine(Path(spec.engine_socket))
