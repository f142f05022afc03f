"""WatchKeeper: an engine under a watch of ours, in the shape of the supervisor of an engine process."""

from typing import Protocol

from tidegate.engines.remote.client import RemoteEngine


class Watch(Protocol):
    """What a watch can do. All on one event loop."""

    engine: RemoteEngine

    def start(self) -> None: ...

    async def wait_ready(self) -> None: ...

    async def aclose(self) -> None: ...


class WatchKeeper:
    """Belongs to one event loop. Other server processes cannot reach the engine through this one: it has no socket."""

    socket_path: None = None

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    @property
    def engine(self) -> RemoteEngine:
        return self._watch.engine

    @property
    def process_id(self) -> int | None:
        """The engine's process, where it has one of its own on this machine; None between two."""
        return self._watch.engine.process_id

    async def start(self) -> None:
        """Begins to start the engine, or to look for it."""
        self._watch.start()

    async def wait_ready(self) -> None:
        """Waits until the engine takes requests. Raises EngineStartFailed when it will not."""
        await self._watch.wait_ready()

    async def aclose(self) -> None:
        """Ends the watch, and what it started. Open requests fail. Idempotent."""
        await self._watch.aclose()
