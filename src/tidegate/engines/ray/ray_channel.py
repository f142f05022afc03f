"""RayChannel: one session of this server with an engine actor, between `LocalEngine` and bytes.

Commands of one turn of the loop leave in one batch, which is sent again until the engine's events confirm it. Batches
of events are believed as `boot_watch.py` says, under the server's own epochs; a batch with many outputs is handed over
in slices, so that the loop's other work never waits for all of it. Does not know: Ray, who ends the session and why.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from tidegate.engine.framing import FramingError
from tidegate.engine.gauges import EngineGauges
from tidegate.engine.messages import PROTOCOL, CacheFlushed, Command, EngineReady, Ping, Pong, StepOutputs
from tidegate.engines.local.client import CommandLine
from tidegate.engines.ray.boot_watch import BootWatch, EpochBook, Verdict
from tidegate.engines.ray.carried_errors import from_wire
from tidegate.engines.ray.unacknowledged import Unacknowledged
from tidegate.engines.ray.wire import (
    EngineAway,
    EventBatch,
    RequestFailed,
    decode_events,
    encode_command,
    encode_commands,
)
from tidegate.errors import ServeError
from tidegate.inference.output import TokenDelta

SLICE_DELTAS = 32
MAX_BEATS_AHEAD = 16
"""Unconfirmed batches beyond which no sign of life is added to them."""


class StreamBroken(Exception):
    """The stream cannot be believed any more; the session is to be given up."""


class OtherVersion(Exception):
    """The actor's code and ours do not understand each other."""


class ChannelOwner(Protocol):
    """What is done with what arrives: `LocalEngine`."""

    is_draining: bool

    def take_greeting(self, channel: CommandLine, greeting: EngineReady) -> None: ...

    def take_deltas(self, epoch: int, deltas: list[TokenDelta]) -> None: ...

    def take_gauges(self, gauges: EngineGauges) -> None: ...

    def take_flushed(self, nonce: int, num_blocks: int) -> None: ...

    def fail_request(self, request_id: str, epoch: int, error: ServeError) -> None: ...

    def lose(self, channel: CommandLine, reason: str) -> None: ...


class RayChannel:
    """`tell` sends bytes to the actor and returns at once; it may lose them. `now`: monotonic clock."""

    def __init__(
        self,
        session: str,
        owner: ChannelOwner,
        epochs: EpochBook,
        tell: Callable[[bytes], None],
        resend_after_s: float,
    ) -> None:
        self.session = session
        self.condition: str | None = None
        """What the actor last said of an engine that is not ready."""
        self.has_failed = False
        """The actor has given its engine up."""
        self.was_told_to_end = False
        """No request is to blame for the end of the session, or of the engine."""
        self.num_batches = 0
        """Counts what was heard: a sign of life when it moves."""
        self._owner = owner
        self._epochs = epochs
        self._tell = tell
        self._watch = BootWatch()
        self._unconfirmed = Unacknowledged(resend_after_s)
        self._unsent: list[msgspec.Raw] = []
        self._number = 0
        self._nonce = 0
        self._is_over = False
        self._is_up = False
        self._loop = asyncio.get_running_loop()

    @property
    def is_congested(self) -> bool:
        return self._unconfirmed.is_congested

    def send(self, command: Command) -> None:
        """See `CommandLine.send`."""
        encoded = encode_command(command)
        if self._is_over:
            return
        self._unsent.append(encoded)
        if len(self._unsent) == 1:
            self._loop.call_soon(self._flush)

    def beat(self) -> None:
        """Shows the actor that this server lives, asks it for the same, and sends again what it has not confirmed."""
        for data in self._unconfirmed.due(self._loop.time()):
            self._tell(data)
        if len(self._unconfirmed) < MAX_BEATS_AHEAD:  # what waits is a sign of life as well, once it arrives
            self._nonce += 1
            self.send(Ping(self._nonce))

    async def take(self, data: bytes) -> None:
        """Carries out a batch of events. Raises StreamBroken and OtherVersion."""
        try:
            batch = decode_events(data)
        except FramingError as error:
            raise StreamBroken(str(error)) from error
        verdict = self._watch.judge(batch.boot, batch.number)
        if verdict is Verdict.LOSE:
            raise StreamBroken("a batch of another start of the actor, or a batch was lost")
        self.num_batches += 1
        if verdict is Verdict.TAKE:
            await self._carry_out(batch)

    def end(self, reason: str, *, has_died: bool = False) -> None:
        """The session is over: open requests fail. `has_died`: with the actor's process. Idempotent."""
        if self._is_over:
            return
        self._is_over = True
        self.was_told_to_end = not has_died
        self._unsent.clear()
        self._lose(reason)

    def _flush(self) -> None:
        if self._is_over or not self._unsent:
            return
        self._number += 1
        data = encode_commands(self.session, self._number, self._unsent)
        self._unsent = []
        self._unconfirmed.add(self._number, data, self._loop.time())
        self._tell(data)

    async def _carry_out(self, batch: EventBatch) -> None:
        self._unconfirmed.confirm(batch.acknowledged)
        self.condition = batch.condition
        self.has_failed = batch.has_failed
        self._owner.is_draining = batch.is_draining
        for report in batch.reports:
            if isinstance(report, StepOutputs):
                await self._take_step(batch.boot, report)
            elif isinstance(report, Pong):
                self._owner.take_gauges(report.gauges)
            elif isinstance(report, EngineReady):
                self._greet(batch.boot, report)
            elif isinstance(report, RequestFailed):
                self._owner.fail_request(report.request_id, self._epochs.epoch, from_wire(report))
            elif isinstance(report, EngineAway):
                self.was_told_to_end = report.was_asked
                self._lose(report.reason)
            elif isinstance(report, CacheFlushed):
                self._owner.take_flushed(report.nonce, report.num_blocks)

    async def _take_step(self, boot: str, step: StepOutputs) -> None:
        # Outputs of an engine that is gone find no open request under this epoch: the fence counts them.
        epoch = self._epochs.epoch if self._epochs.is_current(boot, step.epoch) else 0
        self._owner.take_gauges(step.gauges)
        outputs = step.outputs
        for start in range(0, len(outputs), SLICE_DELTAS):
            if start:
                await asyncio.sleep(0)
            if self._is_over:
                return
            self._owner.take_deltas(epoch, outputs[start : start + SLICE_DELTAS])

    def _greet(self, boot: str, greeting: EngineReady) -> None:
        if greeting.protocol != PROTOCOL:
            raise OtherVersion(f"the actor speaks protocol {greeting.protocol}, this server {PROTOCOL}")
        if self._is_up:
            self._lose("the engine was started anew")
        self._is_up = True
        self.was_told_to_end = False
        epoch, life = self._epochs.greet(boot, greeting.epoch), f"{boot} {greeting.epoch}"
        self._owner.take_greeting(self, EngineReady(epoch, greeting.model, life=life))

    def _lose(self, reason: str) -> None:
        if self._is_up:
            self._is_up = False
            self._owner.lose(self, reason)
        self._owner.take_gauges(EngineGauges())
