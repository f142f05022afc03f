"""Server and engine on one virtual clock, where steps take their declared time and the server acts meanwhile.

The engine's half works as its loop does: commands that have arrived are applied between steps, a step computes for
its price, its outputs leave at its end. The server hears of them a moment later. Nothing here waits or measures.
"""

import heapq
from collections.abc import Callable
from itertools import count

from tidegate.backends.simulated import CostModel, SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.core.backend import Backend, BackendCaps, StepLogits
from tidegate.core.budget import StepLimits
from tidegate.core.plan import StepPlan
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.step import EngineCore
from tidegate.engine.framing import FrameDecoder
from tidegate.engine.messages import StepOutputs
from tidegate.engine_process.switchboard import Core
from tidegate.inference.model_info import ModelInfo
from tidegate.testing.engine_pair import EnginePair
from tidegate.testing.manual_clock import ManualClock

REACTION_S = 0.001
"""From the end of a step to what the server does about its outputs."""


class TimedPair(EnginePair):
    """`steps` holds begin, end and plan of every step that computed anything."""

    def __init__(
        self, clock: ManualClock, shape: SimulatedShape | None = None, limits: StepLimits | None = None
    ) -> None:
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._arrived: list[tuple[int, bytes, FrameDecoder]] = []
        self._is_computing = False
        self._shape = shape or SimulatedShape(max_sequences=8, num_blocks=256)
        self._limits = limits
        self.steps: list[tuple[float, float, StepPlan]] = []
        super().__init__(self._make, clock)

    @property
    def blocks_used(self) -> int:
        return self.core.statistics().blocks_used

    def at(self, instant: float, act: Callable[[], None]) -> None:
        """Lets the server half do something at an instant of the clock, in the order of these calls."""
        heapq.heappush(self._agenda, (instant, next(self._order), act))

    def run_until(self, instant: float) -> None:
        """Runs both halves up to `instant`; what the server has just asked for leaves first."""
        self.turn()
        while True:
            self._apply_arrived()
            now = self.clock.now()
            wake_at = self.core.next_wake_at(now)
            if wake_at is not None and wake_at <= now < instant:
                self._report(self.board.route(self.core.step(now), 0.0))
                continue
            self._send(self.board.catch_up())
            due = [self._agenda[0][0]] if self._agenda else []
            due += [] if wake_at is None or wake_at <= now else [wake_at]
            if not due or min(due) > instant:
                self.clock.advance_to(instant)
                return
            self.clock.advance_to(min(due))
            if self._agenda and self._agenda[0][0] <= self.clock.now():
                self._act()

    def receive(self, client: int, data: bytes, decoder: FrameDecoder) -> None:
        """While a step computes, commands wait in the socket."""
        if self._is_computing:
            self._arrived.append((client, data, decoder))
        else:
            super().receive(client, data, decoder)

    def elapse(self, duration_s: float) -> None:
        """What computing costs: the server half lives on."""
        end = round(self.clock.now() + duration_s, 9)
        self._is_computing = True
        while self._agenda and self._agenda[0][0] < end:
            self.clock.advance_to(self._agenda[0][0])
            self._act()
        self._is_computing = False
        self.clock.advance_to(end)

    def _make(self) -> tuple[Core, ModelInfo]:
        inner = SimulatedBackend(SimulatedModel.SUCCESSOR, self._shape, cost=CostModel(), elapse=self.elapse)
        backend: Backend = _Watched(inner, self)
        core = EngineCore(backend, SamplerChain(inner.caps.vocab_size, inner.caps.eos_token_ids), self._limits)
        return core, core.model

    def _act(self) -> None:
        _, _, act = heapq.heappop(self._agenda)
        act()
        self.turn()

    def _apply_arrived(self) -> None:
        arrived, self._arrived = self._arrived, []
        for client, data, decoder in arrived:
            super().receive(client, data, decoder)

    def _report(self, parts: list[tuple[int, StepOutputs]]) -> None:
        """The outputs reach the server at the end of the step; what it does about them reaches the engine later."""
        self._send(parts)
        self.at(round(self.clock.now() + REACTION_S, 9), lambda: None)


class _Watched:
    """Keeps the times of steps."""

    def __init__(self, inner: SimulatedBackend, pair: TimedPair) -> None:
        self._inner = inner
        self._pair = pair

    @property
    def caps(self) -> BackendCaps:
        return self._inner.caps

    def execute(self, plan: StepPlan) -> StepLogits:
        begin = self._pair.clock.now()
        logits = self._inner.execute(plan)
        if plan.num_tokens:
            self._pair.steps.append((begin, self._pair.clock.now(), plan))
        return logits

    def close(self) -> None:
        self._inner.close()
