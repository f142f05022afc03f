"""LocalEngine: the `Engine` port over one connection at a time to an engine process.

Routes each delta to its request's sink through the fence. What the fence turns away, and what comes for a choice that
has ended, is dropped and counted. When the connection ends, every open sink fails once; what an engine died with, and
dies with again, is refused (`lifecycle/poison.py`). Somebody else connects (`link.py`) and keeps the process alive
(`supervisor.py`).
"""

import math
from collections.abc import Callable
from typing import Any, Protocol

from tidegate import system
from tidegate.engine.framing import FramingError, LimitError
from tidegate.engine.gauges import EngineGauges, EngineStatus
from tidegate.engine.messages import AbortRequest, AddRequest, Command, EngineReady, FlushCache, HoldRequest, Ping
from tidegate.engine.port import DeltaSink
from tidegate.engines.tell import fail_sink, tell_all
from tidegate.errors import EngineLost, EngineRefused, EngineUnavailable, InternalError, ServeError
from tidegate.inference.fingerprint import fingerprint
from tidegate.inference.finish import EngineFinish
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest
from tidegate.lifecycle.fence import GenerationFence
from tidegate.lifecycle.poison import PoisonWatch, Suspect, death_id

MAX_RETRY_AFTER_S = 120
MAX_FLUSHES = 16
"""Flushes of the cache that may wait for their answer at once."""

_COMPLETE = frozenset(EngineFinish) - {EngineFinish.ABORTED, EngineFinish.FAILED}


class CommandLine(Protocol):
    """The way to one start of an engine: a connection to its process, or a session with an actor around it."""

    @property
    def is_congested(self) -> bool:
        """True while too many commands wait."""
        ...

    @property
    def was_told_to_end(self) -> bool:
        """True when the engine said that somebody wants it to end, or we hung up: no request is to blame."""
        ...

    def send(self, command: Command) -> None:
        """Sends a command. Without effect when the line is dead. Raises LimitError when the command is too long."""
        ...


class _Route:
    """Where one request's outputs go, and which of its choices have not ended."""

    __slots__ = ("has_output", "is_aborted", "open_choices", "request", "sink")

    def __init__(self, sink: DeltaSink, request: InferenceRequest) -> None:
        self.sink = sink
        self.request = request
        self.open_choices = set(range(request.num_choices))
        self.is_aborted = False
        self.has_output = False


class LocalEngine:
    """See the module. `on_ready` and `on_lost` hold functions that are told of each change, on the event loop.

    `report` gets the context of an error that a sink or an observer raised, as a loop's exception handler does. `now`
    is a monotonic clock; the system's where none is given. Engines of one pool share one `poison`: a request that one
    died with may be given to the next.
    """

    def __init__(
        self,
        report: Callable[[dict[str, Any]], None],
        now: Callable[[], float] | None = None,
        poison: PoisonWatch | None = None,
    ) -> None:
        self.on_ready: list[Callable[[EngineReady], None]] = []
        self.on_lost: list[Callable[[str], None]] = []
        self.retry_after_s = 1.0
        """What a refused caller is told; whoever restarts the engine knows better than we do."""
        self.process_id: int | None = None
        self.num_restarts: int | None = None
        """Set by a supervisor in this process; without one it is read off the epoch, which starts at 1."""
        self.describe: Callable[[], str] | None = None
        """Set by a supervisor: what is being done about an engine that is not ready."""
        self.num_stalls = 0
        self.is_draining = False
        """Set by whoever connects: the engine finishes what is open and takes nothing new."""
        self._report = report
        self._now = now or system.SystemClock().now
        self._poison = PoisonWatch() if poison is None else poison
        self._flushes: dict[int, Callable[[int | None], None]] = {}
        self._num_flushes = 0
        self._fence = GenerationFence()
        self._routes: dict[str, _Route] = {}
        self._channel: CommandLine | None = None
        self._epoch = 0
        self._life = ""
        self._model: ModelInfo | None = None
        self._gauges = EngineGauges()
        self._num_late = 0
        self._num_heard = 0

    @property
    def is_ready(self) -> bool:
        """Whether it takes requests."""
        return self._channel is not None and not self.is_draining

    @property
    def num_open(self) -> int:
        """Requests whose sinks have not been told an end."""
        return len(self._routes)

    @property
    def gauges(self) -> EngineGauges:
        """The last accounts heard."""
        return self._gauges

    @property
    def num_heard(self) -> int:
        """Counts messages from the engine: a sign of life when it moves."""
        return self._num_heard

    def submit(self, request: InferenceRequest, sink: DeltaSink) -> None:
        """See `Engine.submit`. Raises EngineRefused for a request that is too long to send, or poison."""
        channel = self._channel
        if channel is None or self.is_draining:
            raise EngineUnavailable("The engine is not ready.", retry_after_s=self._bounded_retry_s())
        if channel.is_congested:
            raise EngineUnavailable("The engine does not keep up.", retry_after_s=1)
        if request.request_id in self._routes:
            raise InternalError(f"request {request.request_id} was submitted twice")
        if not self._poison.is_idle and self._poison.refuses(fingerprint(request), self._now()):
            raise EngineRefused("The engine stopped each time it worked on this request; it is refused for a while.")
        try:
            channel.send(AddRequest(request))
        except LimitError as error:
            raise EngineRefused(f"The request is too large for the engine: {error}.") from error
        self._fence.open(request.request_id, self._epoch)
        self._routes[request.request_id] = _Route(sink, request)

    def abort(self, request_id: str, choice: int | None = None) -> None:
        """See `Engine.abort`."""
        route = self._routes.get(request_id)
        if route is None or route.is_aborted:
            return
        if choice is None:
            route.is_aborted = True
        elif choice not in route.open_choices:
            return
        self._send(AbortRequest(request_id, choice))

    def hold(self, request_id: str, *, held: bool) -> None:
        """See `Engine.hold`."""
        if request_id in self._routes:
            self._send(HoldRequest(request_id, held))

    def statistics(self) -> EngineStatus:
        """See `Engine.statistics`."""
        poison = self._poison.statistics()
        return EngineStatus(
            is_ready=self.is_ready,
            epoch=self._epoch,
            num_restarts=max(0, self._epoch - 1) if self.num_restarts is None else self.num_restarts,
            num_stale_outputs=self._fence.num_stale + self._num_late,
            gauges=self._gauges,
            model=self._model,
            process_id=self.process_id,
            condition=None if self.is_ready or self.describe is None else self.describe(),
            retry_after_s=self._bounded_retry_s(),
            num_stalls=self.num_stalls,
            num_poison_suspects=poison.num_suspects,
            num_poison_refusals=poison.num_refusals,
        )

    def flush_cache(self, on_answer: Callable[[int | None], None]) -> None:
        """Has the engine drop its cached blocks; `on_answer` gets their number, or None when the engine is lost.

        Raises EngineUnavailable when the engine is not ready, or has not answered earlier ones.
        """
        if self._channel is None:
            raise EngineUnavailable("The engine is not ready.", retry_after_s=self._bounded_retry_s())
        if len(self._flushes) >= MAX_FLUSHES:
            raise EngineUnavailable("The engine has not answered earlier flushes of its cache.")
        self._num_flushes += 1
        self._flushes[self._num_flushes] = on_answer
        self._send(FlushCache(self._num_flushes))

    def _bounded_retry_s(self) -> int:
        return max(1, min(MAX_RETRY_AFTER_S, math.ceil(self.retry_after_s)))

    def ping(self, nonce: int) -> None:
        """Asks for a sign of life; without effect when there is no connection."""
        self._send(Ping(nonce))

    def take_greeting(self, channel: CommandLine, greeting: EngineReady) -> None:
        """See `ChannelOwner.take_greeting`: refuses an epoch older than one seen before."""
        try:
            self._fence.advance(greeting.epoch)
        except InternalError as error:
            raise FramingError(error.message) from error
        self._num_heard += 1
        self._channel = channel
        self._epoch = greeting.epoch
        self._life = greeting.life or system.mint_life()
        self._model = greeting.model
        self._gauges = EngineGauges()
        tell_all(self.on_ready, greeting, self._report)

    def take_deltas(self, epoch: int, deltas: list[TokenDelta]) -> None:
        """See `ChannelOwner.take_deltas`."""
        admits = self._fence.admits
        routes = self._routes
        for delta in deltas:
            if not admits(delta.request_id, epoch):
                continue
            route = routes[delta.request_id]
            route.has_output = True
            if delta.choice not in route.open_choices:
                self._num_late += 1
                continue
            if delta.finish is not None:
                self._finish(delta, route)
            try:
                route.sink.deliver(delta)
            except Exception as error:
                self._give_up(delta.request_id, route, error)

    def take_gauges(self, gauges: EngineGauges) -> None:
        """See `ChannelOwner.take_gauges`."""
        self._num_heard += 1
        self._gauges = gauges

    def take_flushed(self, nonce: int, num_blocks: int) -> None:
        """See `ChannelOwner.take_flushed`."""
        self._num_heard += 1
        on_answer = self._flushes.pop(nonce, None)
        if on_answer is not None:
            on_answer(num_blocks)

    def fail_request(self, request_id: str, epoch: int, error: ServeError) -> None:
        """The engine has given up one request, with a reason of its own; all others go on."""
        if self._fence.admits(request_id, epoch):
            self._fence.close(request_id)
            fail_sink(self._routes.pop(request_id).sink, error, self._report)

    def lose(self, channel: CommandLine, reason: str) -> None:
        """See `ChannelOwner.lose`: fails every open sink."""
        if channel is not self._channel:
            return
        self._channel = None
        self._fence.advance(None)
        routes, self._routes = self._routes, {}
        if not channel.was_told_to_end:
            suspects = [Suspect(fingerprint(route.request), route.has_output) for route in routes.values()]
            self._poison.note_death(suspects, self._now(), death_id(self._life))
        flushes, self._flushes = self._flushes, {}
        for on_answer in flushes.values():
            on_answer(None)
        for route in routes.values():
            fail_sink(route.sink, EngineLost("The engine stopped while it worked on this request."), self._report)
        tell_all(self.on_lost, reason, self._report)

    def _send(self, command: Command) -> None:
        if self._channel is not None:
            self._channel.send(command)

    def _finish(self, delta: TokenDelta, route: _Route) -> None:
        route.open_choices.discard(delta.choice)
        if not route.open_choices:
            if not self._poison.is_idle and delta.finish in _COMPLETE:
                self._poison.note_completed(fingerprint(route.request))
            self._fence.close(delta.request_id)
            del self._routes[delta.request_id]

    def _give_up(self, request_id: str, route: _Route, error: Exception) -> None:
        """A sink raised: its request ends here and in the engine, all others go on."""
        self._report({"message": "a sink raised", "exception": error})
        if self._fence.close(request_id):
            del self._routes[request_id]
            self._send(AbortRequest(request_id))
            fail_sink(route.sink, InternalError("An internal error."), self._report)
