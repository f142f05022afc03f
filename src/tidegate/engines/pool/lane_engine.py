"""LaneEngine: the engines of a pool that serve one revision, as one `Engine`."""

from typing import Protocol

from tidegate.engine.gauges import EngineStatus
from tidegate.engine.port import DeltaSink
from tidegate.engines.pool.identity import ModelIdentity
from tidegate.inference.request import InferenceRequest


class Lanes(Protocol):
    """The pool, as its lanes know it."""

    def submit_within(self, request: InferenceRequest, sink: DeltaSink, identity: ModelIdentity | None) -> None: ...

    def abort(self, request_id: str, choice: int | None = None) -> None: ...

    def hold(self, request_id: str, *, held: bool) -> None: ...

    def statistics(self) -> EngineStatus: ...


class LaneEngine:
    """Implements `Engine`. Lives as long as one call."""

    def __init__(self, pool: Lanes, identity: ModelIdentity | None) -> None:
        self._pool = pool
        self._identity = identity

    def submit(self, request: InferenceRequest, sink: DeltaSink) -> None:
        """See `Engine.submit`."""
        self._pool.submit_within(request, sink, self._identity)

    def abort(self, request_id: str, choice: int | None = None) -> None:
        """See `Engine.abort`."""
        self._pool.abort(request_id, choice)

    def hold(self, request_id: str, *, held: bool) -> None:
        """See `Engine.hold`."""
        self._pool.hold(request_id, held=held)

    def statistics(self) -> EngineStatus:
        """See `Engine.statistics`: of the whole pool."""
        return self._pool.statistics()
