"""EngineChannel: bytes of one connection to messages and back.

Commands sent in one turn of the loop leave in one write. A step with many outputs is handed over in slices, the rest
on later turns, so that the loop's other work never waits for a whole step; while much is waiting, reading stops.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

from tidegate.engine.framing import FrameDecoder, FramingError, decode_report, encode_frame
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import (
    PROTOCOL,
    CacheFlushed,
    Command,
    EngineFault,
    EngineReady,
    Farewell,
    Pong,
    StepOutputs,
)
from tidegate.engine.session import EngineSession, SessionEvent
from tidegate.inference.output import TokenDelta

SLICE_DELTAS = 32
PAUSE_ABOVE_BYTES = 1024 * 1024
RESUME_BELOW_BYTES = 256 * 1024
MAX_UNSENT_BYTES = 64 * 1024 * 1024
"""What may wait for an engine that does not read; above it the channel counts as congested."""


class ChannelOwner(Protocol):
    """What is done with what arrives."""

    def take_greeting(self, channel: "EngineChannel", greeting: EngineReady) -> None:
        """The engine is ready. Raises FramingError when it is not one that we accept."""
        ...

    def take_deltas(self, epoch: int, deltas: list[TokenDelta]) -> None:
        """Some outputs of a step."""
        ...

    def take_gauges(self, gauges: EngineGauges) -> None:
        """The accounts after a step."""
        ...

    def take_flushed(self, nonce: int, num_blocks: int) -> None:
        """The answer to a FlushCache."""
        ...

    def lose(self, channel: "EngineChannel", reason: str) -> None:
        """The connection is over. Called once; nothing follows."""
        ...


class EngineChannel(asyncio.Protocol):
    """Lives as long as one connection. `call_soon` runs a function on a later turn of the loop."""

    def __init__(
        self,
        owner: ChannelOwner,
        call_soon: Callable[[Callable[[], None]], object],
        on_end: Callable[[], None] | None = None,
    ) -> None:
        self.is_broken = False
        """True when the engine broke the protocol or said that it failed."""
        self.was_told_to_end = False
        """True when the engine said that it ends because somebody wants it to, or we hung up."""
        self._owner = owner
        self._call_soon = call_soon
        self._on_end = on_end
        self._session = EngineSession()
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._num_unsent_bytes = 0
        self._payloads: deque[memoryview] = deque()
        self._num_waiting_bytes = 0
        self._is_paused = False
        self._is_slicing = False
        self._step: StepOutputs | None = None
        self._num_delivered = 0
        self._reason = "the connection to the engine was closed"

    @property
    def is_ready(self) -> bool:
        return self._session.is_ready

    @property
    def is_congested(self) -> bool:
        """True while the engine has left too many commands unread, those of this turn included."""
        if self._transport is None:
            return False
        return self._num_unsent_bytes + self._transport.get_write_buffer_size() > MAX_UNSENT_BYTES

    def send(self, command: Command) -> None:
        """Sends a command, with all others of this turn. Without effect when the connection is over.

        Raises LimitError when the command is too long for a frame.
        """
        frame = encode_frame(command)
        if self._transport is None:
            return
        self._unsent.append(frame)
        self._num_unsent_bytes += len(frame)
        if len(self._unsent) == 1:
            self._call_soon(self._flush)

    def close(self) -> None:
        """Ends the connection at once, unsent commands or not; its owner hears of it soon."""
        self.was_told_to_end = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            payloads = self._decoder.feed(data)
        except FramingError as error:
            self._break(error)
            return
        self._payloads += payloads
        self._num_waiting_bytes += sum(len(payload) for payload in payloads)
        if self._is_slicing:
            self._pace()
        else:
            self._deliver_slice()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._unsent.clear()
        while self._deliver(SLICE_DELTAS):
            pass
        if exc is not None:
            self._reason = f"the connection to the engine broke: {exc}"
        self._session.apply(SessionEvent.CLOSED)
        self._owner.lose(self, self._reason)
        if self._on_end is not None:
            self._on_end()

    def _flush(self) -> None:
        if self._transport is not None and self._unsent:
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()
        self._num_unsent_bytes = 0

    def _deliver_slice(self) -> None:
        self._is_slicing = self._deliver(SLICE_DELTAS)
        if self._is_slicing:
            self._call_soon(self._deliver_slice)
        self._pace()

    def _pace(self) -> None:
        if self._transport is None:
            return
        if not self._is_paused and self._num_waiting_bytes > PAUSE_ABOVE_BYTES:
            self._is_paused = True
            self._transport.pause_reading()
        elif self._is_paused and self._num_waiting_bytes < RESUME_BELOW_BYTES:
            self._is_paused = False
            self._transport.resume_reading()

    def _deliver(self, num_deltas: int) -> bool:
        """Hands over at most so many deltas; says whether anything is left."""
        while self._step is not None or self._payloads:
            if self._step is None:
                self._open(self._payloads.popleft())
                continue
            if num_deltas <= 0:
                return True
            num_deltas -= self._deliver_part(self._step, num_deltas)
        return False

    def _deliver_part(self, step: StepOutputs, num_deltas: int) -> int:
        outputs = step.outputs
        start, end = self._num_delivered, self._num_delivered + num_deltas
        self._num_delivered = end
        if end >= len(outputs):
            self._step = None
        part = outputs if start == 0 and end >= len(outputs) else outputs[start:end]
        self._owner.take_deltas(step.epoch, part)
        return len(part)

    def _open(self, payload: memoryview) -> None:
        """Decodes one message and carries it out, up to the outputs of a step."""
        self._num_waiting_bytes -= len(payload)
        try:
            self._take(payload)
        except FramingError as error:
            self._break(error)

    def _take(self, payload: memoryview) -> None:
        report = decode_report(payload)
        if isinstance(report, StepOutputs | Pong):
            self._session.apply(SessionEvent.REPORTED)
            self._owner.take_gauges(report.gauges)
            if isinstance(report, StepOutputs) and report.outputs:
                self._step = report
                self._num_delivered = 0
        elif isinstance(report, CacheFlushed):
            self._session.apply(SessionEvent.REPORTED)
            self._owner.take_flushed(report.nonce, report.num_blocks)
        elif isinstance(report, Farewell):
            self.was_told_to_end = True
            self._reason = "the engine was told to end"
        elif isinstance(report, EngineReady):
            if report.protocol != PROTOCOL:
                raise FramingError(f"the engine speaks protocol {report.protocol}, we speak {PROTOCOL}")
            self._session.apply(SessionEvent.GREETED)
            self._owner.take_greeting(self, report)
        elif isinstance(report, EngineFault):
            self._session.apply(SessionEvent.FAULTED)
            self._end(f"the engine failed: {report.message}")

    def _break(self, error: FramingError) -> None:
        if not self.is_broken:
            self._session.apply(SessionEvent.BROKEN)
            self._end(f"the engine broke the protocol: {error}")

    def _end(self, reason: str) -> None:
        """Believes nothing more of what was received; the transport's end follows."""
        self.is_broken = True
        self._reason = reason
        self._payloads.clear()
        self._num_waiting_bytes = 0
        if self._transport is not None:
            self._transport.abort()
