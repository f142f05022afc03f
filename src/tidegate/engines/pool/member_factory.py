"""The ports through which a pool gets further engines, and gives up those that it has.

A new kind of engine that can be started while the server runs implements both. Nothing here is called by the pool
itself: who adds and retires engines (an operator, `scaling.py`'s shell) calls the factory, then `EnginePool.join` or,
before the end, `EnginePool.retire`.
"""

from typing import Protocol

from tidegate.engine.port import WatchedEngine


class KeptEngine(Protocol):
    """One engine together with whoever keeps it. All methods are called on the event loop."""

    @property
    def engine(self) -> WatchedEngine:
        """There from the beginning, and the same one until the end: it is not ready until it says so."""
        ...

    async def start(self) -> None:
        """Begins to start it and returns at once: a start may take minutes, and nobody may be held up by it."""
        ...

    async def wait_ready(self) -> None:
        """Waits until it takes requests. Raises why when it was given up; then `aclose` is still called."""
        ...

    async def aclose(self) -> None:
        """This server lets go of it. Open requests fail. Idempotent, also before or during the start."""
        ...


class MemberFactory(Protocol):
    """Makes engines of one model, and ends them for good. They share the suspicion of what kills engines."""

    def make(self, name: str, *, url: str | None = None) -> KeptEngine:
        """Returns a further engine, not started. `name` is unique among those that live.

        `url` says where it is, for kinds that are started by others; None for kinds that are started by us. Raises
        LoadError where that is not what the kind needs.
        """
        ...

    async def retire(self, kept: KeptEngine) -> None:
        """Ends an engine that this factory made, and what it ran on: no server needs it any more.

        It has no requests of this server. Idempotent.
        """
        ...
