"""EnginePair: both ends of the engine boundary in one process, without sockets, threads or time.

A real EngineCore behind a real Switchboard, a real LocalEngine behind a real EngineChannel, and between them the real
frames. Nothing happens but in `turn`, `step`, `run` and `feed`.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from tidegate.backends.simulated import SimulatedBackend, SimulatedModel, SimulatedShape
from tidegate.backends.simulated_pooling import SimulatedPooling
from tidegate.core.sampler.chain import SamplerChain
from tidegate.core.step import EngineCore
from tidegate.engine.framing import FrameDecoder, decode_command, encode_frame
from tidegate.engine.messages import Report, StepOutputs
from tidegate.engine_process.switchboard import Core, Switchboard
from tidegate.engines.local.channel import EngineChannel
from tidegate.engines.local.client import LocalEngine
from tidegate.inference.model_info import ModelInfo
from tidegate.lifecycle.poison import PoisonWatch
from tidegate.testing.manual_clock import ManualClock


def simulated_core(
    model: SimulatedModel = SimulatedModel.HASH, shape: SimulatedShape | None = None
) -> tuple[EngineCore, ModelInfo]:
    """Returns a small core whose steps take no time, and its model, as EnginePair wants them."""
    backend = SimulatedBackend(model, shape or SimulatedShape(max_sequences=8, num_blocks=256))
    sampler = SamplerChain(backend.caps.vocab_size, backend.caps.eos_token_ids)
    core = EngineCore(backend, sampler, pooling=SimulatedPooling(vocab_size=backend.caps.vocab_size))
    return core, core.model


class EnginePair:
    """`make_core` gives a core and its model; it is called again for each `restart`. Ready when made."""

    def __init__(
        self,
        make_core: Callable[[], tuple[Core, ModelInfo]],
        clock: ManualClock,
        *,
        is_ready: bool = True,
        poison: PoisonWatch | None = None,
    ) -> None:
        self.clock = clock
        self.engine = LocalEngine(self._note, clock.now, poison)
        self.raised: list[dict[str, Any]] = []
        """What sinks and observers raised."""
        self.epoch = 0
        self.num_writes = 0
        """Writes of the server half: commands of one turn leave in one."""
        self.num_frames = 0
        """Frames of steps that the engine's half has sent."""
        self._make_core = make_core
        self._soon: deque[Callable[[], None]] = deque()
        self._client = 0
        self.start()
        if is_ready:
            self.connect()

    def start(self) -> None:
        """Makes a new engine, under the next epoch, to which nobody is connected."""
        self.epoch += 1
        self.core, self.model = self._make_core()
        self.board = Switchboard(self.core, self.epoch, self.model)
        self.transport: _PairTransport | None = None

    def connect(self, greeting: Report | None = None) -> None:
        """Connects the server half, and greets it: with another message where one is given."""
        self._client += 1
        self.channel = EngineChannel(self.engine, self._soon.append)
        self.transport = _PairTransport(self, self._client, self.channel)
        self.channel.connection_made(self.transport)
        true_greeting = self.board.join(self._client)
        self.feed(encode_frame(greeting or true_greeting))

    def lose(self) -> None:
        """Cuts the connection, as when the engine is killed."""
        transport, self.transport = self.transport, None
        if transport is not None:
            self.board.leave(transport.client, self.clock.now())
            self.channel.connection_lost(None)

    def restart(self) -> None:
        """Kills the engine and connects to the next one."""
        self.lose()
        self.start()
        self.connect()

    def feed(self, data: bytes) -> None:
        """Gives the server half bytes as if from the engine."""
        self.channel.data_received(data)

    def later(self, callback: Callable[[], None]) -> None:
        """Runs `callback` in the next `turn`."""
        self._soon.append(callback)

    def turn(self) -> None:
        """Runs the server half's event loop until it has nothing to do: commands reach the core, slices their sinks."""
        while self._soon:
            self._soon.popleft()()

    def step(self) -> bool:
        """Runs one step of the engine if one is due now, and delivers its frame; says whether one was."""
        self.turn()
        now = self.clock.now()
        wake_at = self.core.next_wake_at(now)
        if wake_at is None or wake_at > now:
            self._send(self.board.catch_up())
            return False
        self._send(self.board.route(self.core.step(now), 0.0))
        self.turn()
        return True

    def run(self, max_steps: int = 10_000) -> int:
        """Steps until the engine waits for a command, moving the clock where it sleeps; returns the number of steps.

        Raises AssertionError when it is not done after `max_steps`.
        """
        num_steps = 0
        while num_steps < max_steps:
            if self.step():
                num_steps += 1
                continue
            wake_at = self.core.next_wake_at(self.clock.now())
            if wake_at is None:
                self.core.check_integrity()
                return num_steps
            self.clock.advance_to(wake_at)
        raise AssertionError(f"the engine still works after {max_steps} steps")

    def receive(self, client: int, data: bytes, decoder: FrameDecoder) -> None:
        """What the engine's half does with bytes."""
        self.num_writes += 1
        for frame in decoder.feed(data):
            answer = self.board.receive(client, decode_command(frame), self.clock.now())
            if answer is not None:
                self.later(partial(self.channel.data_received, encode_frame(answer)))

    def _send(self, parts: list[tuple[int, StepOutputs]]) -> None:
        for client, report in parts:
            if self.transport is not None and client == self.transport.client:
                self.num_frames += 1
                self.feed(encode_frame(report))

    def _note(self, context: dict[str, Any]) -> None:
        self.raised.append(context)


class _PairTransport(asyncio.Transport):
    """Carries the server half's writes straight to the engine's half."""

    def __init__(self, pair: EnginePair, client: int, channel: EngineChannel) -> None:
        super().__init__()
        self.client = client
        self._pair = pair
        self._channel = channel
        self._decoder = FrameDecoder()
        self._is_open = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_open:
            self._pair.receive(self.client, bytes(data), self._decoder)

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """Nothing arrives but by `feed`."""

    def resume_reading(self) -> None:
        """See `pause_reading`."""

    def abort(self) -> None:
        if self._is_open:
            self._is_open = False
            self._pair.later(self._close)

    def _close(self) -> None:
        if self._pair.transport is self:
            self._pair.lose()
