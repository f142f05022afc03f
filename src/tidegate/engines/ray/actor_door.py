"""ActorDoor: what the server needs of one engine actor, as a port. Ray is behind it (`ray_door.py`)."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from tidegate.engines.ray.ray_trouble import Trouble


@dataclass(frozen=True, slots=True)
class ActorFacts:
    """The process behind an actor just now. `num_active` counts open requests of all servers."""

    boot: str
    process_id: int
    num_active: int
    num_servers: int


class ActorDoor(Protocol):
    """One actor, by its name: whichever process is behind it now. All methods are called on the event loop."""

    @property
    def wanted(self) -> str:
        """What Ray is asked to keep for it, in words."""
        ...

    async def open(self) -> None:
        """Finds the actor, or has it made. Raises whatever Ray does."""
        ...

    def events(self, session: str) -> AsyncGenerator[bytes, None]:
        """Opens a session and yields what the actor says, until it ends. Closing the iterator ends the session.

        Raises whatever Ray does.
        """
        ...

    def tell(self, data: bytes) -> None:
        """Sends a batch of commands, and returns at once. It may get lost. Never raises."""
        ...

    def forget(self, trouble: Trouble) -> None:
        """The actor was lost in this way: the next `open` looks for it anew where that is needed."""
        ...

    async def kill(self) -> None:
        """Ends a process that hangs; Ray starts the next one. Never raises."""
        ...

    async def identify(self) -> "ActorFacts":
        """Asks the process behind it who it is. Raises whatever Ray does."""
        ...

    async def restart_engine(self, drain_s: float | None) -> bool:
        """Has the actor restart its engine, after a drain of at most so long; None: at once.

        Returns False where the drain did not come to its end: then nothing has happened. Raises whatever Ray does.
        """
        ...

    async def retire(self, patience_s: float) -> bool:
        """Ends the actor for good, with what it runs on, and lets go of it. No session of ours is open any more.

        A shared one ends only if every other server has left it too, within so long. Says whether it ended. Never
        raises.
        """
        ...

    async def aclose(self) -> None:
        """Lets go of it. An actor that is ours alone ends with us. Idempotent. Never raises."""
        ...
