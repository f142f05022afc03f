"""What carries a request's choices to an engine whose steps are not ours, as a port: exchanges over HTTP, or a library.

`client.py` decides what becomes of a request; a carrier starts, stops and ends what runs, and reads what comes.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from tidegate.engines.remote.dialect import Piece
from tidegate.errors import ServeError
from tidegate.inference.request import InferenceRequest


class Ending(Enum):
    """How the run of one choice ended."""

    COMPLETE = "complete"
    NOT_SENT = "not sent"
    """The engine never got it: nothing has run."""
    REFUSED = "refused"
    """The engine said no, or that it failed on this one."""
    LOST = "lost"
    """It broke off, or what came could not be read: it may have run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`reason` is for operators. `error` is what the request ends with, None where it is complete."""

    ending: Ending
    reason: str = ""
    error: ServeError | None = None


COMPLETE = Outcome(Ending.COMPLETE)


class Run(Protocol):
    """One choice of a request, on its way. `start` once; `cut` ends it in silence."""

    @property
    def choice(self) -> int: ...

    def start(self) -> None: ...

    def hold(self, *, held: bool) -> None:
        """Stops or resumes handing on what comes; nothing is lost meanwhile."""
        ...

    def cut(self) -> None:
        """Ends the run; its owner hears nothing more. Idempotent."""
        ...


class RunOwner(Protocol):
    """What is done with a run's output."""

    def take_piece(self, run: Run, piece: Piece) -> None: ...

    def end_run(self, run: Run, outcome: Outcome) -> None:
        """Called once, after every piece, unless the run was cut."""
        ...


class Carrier(Protocol):
    """The way to an engine. Belongs to one event loop."""

    def check(self, request: InferenceRequest) -> None:
        """Raises UnsupportedParameter for what this engine would not do exactly, EngineUnavailable without room."""
        ...

    def make_run(self, owner: RunOwner, request: InferenceRequest, choice: int, remote_id: str) -> Run:
        """Returns one choice, not started. `remote_id` names it in the engine."""
        ...

    def abort(self, remote_id: str) -> None:
        """Ends a request in the engine, as far as cutting its run does not do that. Returns at once."""
        ...

    def drop(self) -> None:
        """The engine is gone: lets go of everything that leads to it."""
        ...

    async def aclose(self) -> None:
        """As `drop`, for good, and waits for what that takes. Idempotent."""
        ...
