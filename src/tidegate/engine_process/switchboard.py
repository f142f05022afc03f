"""Switchboard: which server process a request belongs to, and who hears of a step.

Decides, for commands of several clients of one engine, which reach the core, and splits each step's outputs among
their owners: at most one StepOutputs for a client and step. A client may only touch what it added; what a client
leaves behind is aborted. Does not know: sockets, frames, time (it is given), what the core does with a request.
"""

from dataclasses import dataclass
from typing import Protocol

from tidegate.engine.framing import FramingError
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import (
    AbortRequest,
    AddRequest,
    CacheFlushed,
    Command,
    EngineReady,
    FlushCache,
    HoldRequest,
    Ping,
    Pong,
    Report,
    StepOutputs,
)
from tidegate.engine_process.step_times import StepTimes
from tidegate.inference.finish import EngineFinish
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenDelta
from tidegate.inference.request import InferenceRequest


class Core(Protocol):
    """What is asked of `tidegate.core.step.EngineCore`."""

    def apply(self, command: AddRequest | AbortRequest | HoldRequest | FlushCache, now: float) -> None: ...

    def step(self, now: float) -> list[TokenDelta]: ...

    def next_wake_at(self, now: float) -> float | None: ...

    def statistics(self) -> EngineGauges: ...

    def check_integrity(self) -> None: ...


@dataclass(slots=True)
class _Live:
    """A request in the core. Without an owner it only waits for its end."""

    owner: int | None
    num_open: int


class Switchboard:
    """Clients are numbers that the caller gives out, never twice. `life`: see `EngineReady`."""

    def __init__(self, core: Core, epoch: int, model: ModelInfo, life: str | None = None) -> None:
        self._core = core
        self._epoch = epoch
        self._model = model
        self._life = life
        self._live: dict[str, _Live] = {}
        self._times = StepTimes()
        self._heard: dict[int, EngineGauges | None] = {}

    @property
    def num_live(self) -> int:
        """Requests that have not ended, those without an owner included."""
        return len(self._live)

    def join(self, client: int) -> EngineReady:
        """Takes in a client; returns what it must hear first."""
        self._heard[client] = None
        return EngineReady(self._epoch, self._model, life=self._life)

    def leave(self, client: int, now: float) -> None:
        """Forgets a client and aborts everything it owned. Idempotent."""
        if client not in self._heard:
            return
        del self._heard[client]
        for request_id, live in self._live.items():
            if live.owner == client:
                live.owner = None
                self._core.apply(AbortRequest(request_id), now)

    def receive(self, client: int, command: Command, now: float) -> Report | None:
        """Carries out a command; returns an answer that must not wait for a step. Ignores a client that has left.

        Raises FramingError when the client adds a request without choices, or one of its own live ones again.
        """
        if client not in self._heard:
            return None
        if isinstance(command, AddRequest):
            return self._add(client, command, now)
        if isinstance(command, Ping):
            return Pong(command.nonce, self._gauges())
        if isinstance(command, FlushCache):
            return self._flush(command, now)
        live = self._live.get(command.request_id)
        if live is not None and live.owner == client:
            self._core.apply(command, now)
        return None

    def _add(self, client: int, command: AddRequest, now: float) -> Report | None:
        request = command.request
        if request.num_choices < 1:
            raise FramingError(f"request {request.request_id} has {request.num_choices} choices")
        live = self._live.get(request.request_id)
        if live is None:
            self._live[request.request_id] = _Live(client, request.num_choices)
            self._core.apply(command, now)
            return None
        if live.owner == client:
            raise FramingError(f"request {request.request_id} was added twice")
        return StepOutputs(self._epoch, _refusal(request), self._gauges())

    def _flush(self, command: FlushCache, now: float) -> CacheFlushed:
        num_cached = self._core.statistics().blocks_cached
        self._core.apply(command, now)
        return CacheFlushed(command.nonce, num_cached - self._core.statistics().blocks_cached)

    def route(self, deltas: list[TokenDelta], step_s: float) -> list[tuple[int, StepOutputs]]:
        """Takes a step's outputs and duration; returns what each client that it concerns must hear.

        A step without outputs concerns everybody: its gauges have moved.
        """
        self._times.note(self._core.statistics(), step_s)
        parts: dict[int, list[TokenDelta]] = {}
        for delta in deltas:
            owner = self._settle(delta)
            if owner is not None:
                parts.setdefault(owner, []).append(delta)
        if not parts:
            return self.catch_up()
        gauges = self._gauges()
        for client in parts:
            self._heard[client] = gauges
        return [(client, StepOutputs(self._epoch, part, gauges)) for client, part in parts.items()]

    def catch_up(self) -> list[tuple[int, StepOutputs]]:
        """Returns a frame without outputs for every client that has not heard the present gauges."""
        gauges = self._gauges()
        stale = [client for client, heard in self._heard.items() if heard != gauges]
        for client in stale:
            self._heard[client] = gauges
        return [(client, StepOutputs(self._epoch, [], gauges)) for client in stale]

    def _gauges(self) -> EngineGauges:
        return self._times.add_to(self._core.statistics())

    def _settle(self, delta: TokenDelta) -> int | None:
        """Notes a choice's end; returns who owns the delta."""
        live = self._live.get(delta.request_id)
        if live is None:
            return None
        if delta.finish is not None:
            live.num_open -= 1
            if live.num_open <= 0:
                del self._live[delta.request_id]
        return live.owner


def _refusal(request: InferenceRequest) -> list[TokenDelta]:
    return [
        TokenDelta(request.request_id, choice, [], EngineFinish.FAILED, error="this request id is in use")
        for choice in range(request.num_choices)
    ]
