"""The ports through which a pool gets further engines, and gives up those that it has.

A new kind of engine that can be started while the server runs implements both. Nothing here is called by the pool
itself: who adds and retires engines (an operator, the shell of `scaling.py`) calls the factory, and then
`EnginePool.join`, or, before the end, `EnginePool.retire`.
"""

from typing import Protocol, TypeVar

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


Kept = TypeVar("Kept", bound=KeptEngine)
Spec = TypeVar("Spec", contravariant=True)


class MemberFactory(Protocol[Spec, Kept]):
    """Makes engines of one model, and ends them for good. They share the suspicion of what kills engines.

    `Spec` is what one engine is to be: its name, unique among those that live, and its settings.
    """

    def make(self, spec: Spec) -> Kept:
        """Returns a further engine, not started. Raises LoadError for settings that it cannot have."""
        ...

    async def retire(self, kept: Kept) -> None:
        """Ends an engine that this factory made, and what it ran on: no server needs it any more.

        It has no requests of this server. Idempotent.
        """
        ...
