"""Which engines an actor can have inside, and how each is made: the one table. Runs in the actor."""

from collections.abc import Callable
from typing import Protocol

from tidegate.engine.port import WatchedEngine
from tidegate.engines.life.restart_policy import RestartSettings
from tidegate.engines.local.supervisor import Supervisor, SupervisorSettings
from tidegate.engines.ray.actor_spec import HostedEngineSpec


class HostedEngine(Protocol):
    """One engine together with whoever keeps it; belongs to the actor's event loop."""

    @property
    def engine(self) -> WatchedEngine: ...

    async def start(self) -> None:
        """Begins to start it and returns at once."""
        ...

    async def restart(self) -> None:
        """Ends the present one, and starts the next."""
        ...

    async def wait_ready(self) -> None:
        """Waits until it takes requests. Raises why when it was given up."""
        ...

    async def aclose(self) -> None:
        """Ends it. Idempotent."""
        ...


class UnknownKind(Exception):
    """The actor has no such engine: server and actor run different versions, or an extra is missing there."""


def _make_process(spec: HostedEngineSpec) -> HostedEngine:
    if spec.process is None:
        raise UnknownKind(f"the engine {spec.kind} came without its options")
    restart = RestartSettings(
        first_wait_s=spec.restart_wait_s, max_wait_s=max(RestartSettings().max_wait_s, spec.restart_wait_s)
    )
    return Supervisor(spec.process, SupervisorSettings(restart=restart, stall_timeout_s=spec.stall_timeout_s))


MAKERS: dict[str, Callable[[HostedEngineSpec], HostedEngine]] = {
    "llama": _make_process,
    "scripted": _make_process,
    "simulated": _make_process,
}


def make_hosted(spec: HostedEngineSpec) -> HostedEngine:
    """Returns the engine, not started. Raises UnknownKind."""
    maker = MAKERS.get(spec.kind)
    if maker is None:
        raise UnknownKind(f"no engine {spec.kind} can be made here")
    return maker(spec)
