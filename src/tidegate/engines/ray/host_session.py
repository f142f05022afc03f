"""HostSession: one server at an engine, as the actor around it knows it: its requests, and what it has to be told.

Everything that the engine has for a server in one turn leaves in one batch, in the order in which it happened. Request
ids are the server's own, and two servers may choose the same: the engine knows them under the session's name. What
waits to be read is counted; a server that leaves too much unread is given up by the host.
"""

import asyncio
from typing import Protocol

import msgspec

from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.engine.messages import Command, StepOutputs
from tidegate.engines.ray.carried_errors import to_wire
from tidegate.engines.ray.command_order import CommandOrder
from tidegate.engines.ray.wire import EngineAway, EventBatch, RayReport, RequestFailed
from tidegate.errors import EngineLost, ServeError
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest

MAX_UNREAD_DELTAS = 262_144
"""Outputs that may wait for one server; one that leaves more unread is given up."""


class EngineLook(Protocol):
    """What a session reads of the engine when it makes a batch. `epoch` is that of the outputs that come now."""

    boot: str
    epoch: int
    is_draining: bool
    has_failed: bool

    def status(self) -> EngineStatus:
        """Returns the engine's own snapshot."""
        ...


class HostSession:
    """Belongs to the actor's event loop."""

    def __init__(self, name: str, look: EngineLook) -> None:
        self.name = name
        self.order: CommandOrder[list[Command]] = CommandOrder()
        self.requests: dict[str, HostedRequest] = {}
        """Requests that have not ended, by the server's ids."""
        self.is_over = False
        self._look = look
        self._reports: list[RayReport] = []
        self._deltas: list[TokenDelta] = []
        self._num_unread = 0
        self._number = 0
        self._wake = asyncio.Event()
        self._told: tuple[EngineGauges, str | None, bool, bool, int] | None = None

    @property
    def num_unread(self) -> int:
        """Outputs that wait to be read."""
        return self._num_unread

    def push(self, delta: TokenDelta) -> None:
        """An output of the engine."""
        self._deltas.append(delta)
        self._num_unread += 1
        self._wake.set()

    def tell(self, report: RayReport) -> None:
        """Anything else for the server, behind what waits already."""
        self._close_step()
        self._reports.append(report)
        self._wake.set()

    def note_away(self, reason: str, *, was_asked: bool) -> None:
        """The engine is lost: one word for all of its requests, in place of one for each."""
        self._close_step()
        self._reports = [one for one in self._reports if not _is_loss(one)]
        self.requests.clear()
        self.tell(EngineAway(reason, was_asked))

    def stir(self) -> None:
        """Has it looked whether there is news that nothing else brings: accounts, the engine's condition."""
        self._wake.set()

    def end(self) -> None:
        """Nothing more is said. Idempotent."""
        self.is_over = True
        self._wake.set()

    async def next_batch(self) -> EventBatch | None:
        """Waits for something to say, and returns all of it; None at the end."""
        while not self.is_over:
            self._wake.clear()
            batch = self._take()
            if batch is not None:
                return batch
            await self._wake.wait()
        return None

    def _take(self) -> EventBatch | None:
        look, status = self._look, self._look.status()
        condition = None if status.is_ready else status.condition or "the engine is not ready"
        told = (status.gauges, condition, look.is_draining, look.has_failed, self.order.last)
        if not self._deltas and not self._reports and told == self._told:
            return None
        has_moved = self._told is None or self._told[0] != status.gauges
        if self._deltas or (has_moved and status.is_ready):
            self._close_step(always=True)
        reports, self._reports = self._reports, []
        self._told = told
        self._num_unread = 0
        self._number += 1
        return EventBatch(
            look.boot, self._number, self.order.last, reports, condition, look.is_draining, look.has_failed
        )

    def _close_step(self, *, always: bool = False) -> None:
        if self._deltas or always:
            deltas, self._deltas = self._deltas, []
            self._reports.append(StepOutputs(self._look.epoch, deltas, self._look.status().gauges))


class HostedRequest:
    """Implements `DeltaSink` towards the engine. Once detached, what still comes is nobody's."""

    __slots__ = ("_num_open", "_session", "engine_id", "request_id")

    def __init__(self, session: HostSession, request: InferenceRequest) -> None:
        self.request_id = request.request_id
        self.engine_id = f"{session.name}/{request.request_id}"
        self._session: HostSession | None = session
        self._num_open = request.num_choices

    def for_engine(self, request: InferenceRequest) -> InferenceRequest:
        """Returns the request under the name that the engine knows it by."""
        return msgspec.structs.replace(request, request_id=self.engine_id)

    def detach(self) -> None:
        """The server has gone."""
        self._session = None

    def deliver(self, delta: TokenDelta) -> None:
        """See `DeltaSink.deliver`. The delta is ours to change: the engine has made it for this request alone."""
        session = self._session
        if session is None:
            return
        if delta.finish is not None:
            self._num_open -= 1
            if self._num_open <= 0:
                session.requests.pop(self.request_id, None)
        delta.request_id = self.request_id
        session.push(delta)

    def fail(self, error: ServeError) -> None:
        """See `DeltaSink.fail`."""
        session = self._session
        if session is not None:
            session.requests.pop(self.request_id, None)
            session.tell(to_wire(self.request_id, error))


def _is_loss(report: RayReport) -> bool:
    return isinstance(report, RequestFailed) and report.kind == EngineLost.__name__
