"""The `Engine` port: what the server half asks of any engine, and where outputs go."""

from collections.abc import Callable
from typing import Protocol

from tidegate.engine.gauges import EngineStatus
from tidegate.engine.messages import EngineReady
from tidegate.errors import ServeError
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest


class DeltaSink(Protocol):
    """Where one request's outputs go. Called on the event loop, never after the request's end."""

    def deliver(self, delta: TokenDelta) -> None:
        """Takes new tokens of one choice; the last delta of each choice has `finish`."""
        ...

    def fail(self, error: ServeError) -> None:
        """Ends the whole request: the engine is lost. Nothing follows."""
        ...


class Engine(Protocol):
    """A source of tokens. All methods return at once and are called on the event loop.

    Every submitted request ends, for its sink, either with one finishing delta for each choice or with one `fail`.
    """

    def submit(self, request: InferenceRequest, sink: DeltaSink) -> None:
        """Starts a request. Raises EngineUnavailable when the engine is not ready; then `sink` is never called."""
        ...

    def abort(self, request_id: str, choice: int | None = None) -> None:
        """Ends a choice or the whole request by the engine's next step. Idempotent; unknown ids are ignored.

        The sink still gets the finishing deltas.
        """
        ...

    def hold(self, request_id: str, *, held: bool) -> None:
        """Stops or resumes scheduling of a request whose reader is behind."""
        ...

    def statistics(self) -> EngineStatus:
        """Returns a snapshot for readiness, metrics and people."""
        ...


class WatchedEngine(Engine, Protocol):
    """An engine that tells, on the event loop, when it becomes ready and when it is lost."""

    @property
    def on_ready(self) -> list[Callable[[EngineReady], None]]: ...

    @property
    def on_lost(self) -> list[Callable[[str], None]]: ...
