"""RayLink: keeps a LocalEngine in a session with whatever process is behind an engine actor.

Has the actor made, opens a session, reads its one stream without a pause, shows signs of life, and begins again when
the session is lost. One request that is read slowly is held in the engine by itself; the stream goes on for all others.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.engines.life.backoff import Backoff
from tidegate.engines.life.engine_life import EngineLife
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.ray.actor_door import ActorDoor
from tidegate.engines.ray.boot_watch import EpochBook
from tidegate.engines.ray.ray_channel import RayChannel
from tidegate.engines.ray.ray_trouble import Remedy, Trouble, trouble_of

MISSED_BEATS = 4
"""A silence of fewer signs of life than this is never a hang."""
_STALLED = Trouble("it gave no sign of life and was ended", Remedy.ATTACH, has_died=True)
_ENDED = trouble_of(StopAsyncIteration())


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """`heartbeat_s`: time between two signs of life. `stall_timeout_s`: an actor silent for so long is ended.

    After a lost session the next one waits `first_wait_s`, doubled each time in a row up to `max_wait_s`.
    """

    heartbeat_s: float = 1.0
    stall_timeout_s: float = 60.0
    first_wait_s: float = 0.25
    max_wait_s: float = 5.0

    @property
    def resend_after_s(self) -> float:
        """How long a confirmation may take before commands are sent again."""
        return max(2 * self.heartbeat_s, 0.5)

    @property
    def patience(self) -> int:
        """How many signs of life may stay without any answer."""
        return max(MISSED_BEATS, math.ceil(self.stall_timeout_s / self.heartbeat_s))


class RayLink:
    """Used on one event loop: `start`, then `engine` as the Engine port, then `aclose`.

    `name` is the actor's, for people. `mint` returns a new name for a session. `take_note` gets what an operator should
    know of a lost session.
    """

    def __init__(
        self,
        name: str,
        engine: LocalEngine,
        door: ActorDoor,
        settings: LinkSettings,
        mint: Callable[[], str],
        take_note: Callable[[str], None],
    ) -> None:
        self.engine = engine
        self._name = name
        self._door = door
        self._settings = settings
        self._mint = mint
        self._take_note = take_note
        self._epochs = EpochBook()
        self._channel: RayChannel | None = None
        self._backoff = Backoff(settings.first_wait_s, settings.max_wait_s)
        self._life = EngineLife(f"link to the actor {name}", engine, self._live)
        self._reason: str | None = None

    def start(self) -> None:
        """Begins to look for the actor, and returns at once."""
        self.engine.describe = self._describe
        self.engine.on_ready.append(self._note_ready)
        self._life.start()

    async def wait_ready(self) -> None:
        """Waits until the engine takes requests. Raises EngineStartFailed when it never will as things are."""
        await self._life.wait_ready()

    async def aclose(self) -> None:
        """Ends the session. Open requests fail, and are aborted in the engine. Idempotent."""
        await self._life.aclose()

    async def _live(self) -> float:
        """See `Live`: one session. It is sought again whatever was the matter: an operator may have mended it."""
        epoch = self._epochs.epoch
        trouble = await self._hold_session()
        if self._epochs.epoch != epoch:
            self._backoff.reset()
        self._reason = trouble.words
        self._door.forget(trouble)
        if trouble.remedy is Remedy.WAIT_FOR_OPERATOR:
            self._fail(trouble.words)
        return self._backoff.next_wait_s()

    async def _hold_session(self) -> Trouble:
        """Returns when a session is over, or could not begin, with the reason."""
        settings = self._settings
        channel = RayChannel(self._mint(), self.engine, self._epochs, self._door.tell, settings.resend_after_s)
        trouble = _ENDED
        try:
            await self._door.open()
            self._channel = channel
            reading = asyncio.create_task(self._read(channel), name=f"events of the actor {self._name}")
            try:
                has_stalled = await self._watch(channel, reading)
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
            if has_stalled:
                self.engine.num_stalls += 1
                trouble = _STALLED
            else:
                reading.result()
        except Exception as fault:
            trouble = trouble_of(fault)
            self._take_note(f"{trouble.words} ({type(fault).__name__}: {str(fault)[:500]})")
        finally:
            self._channel = None
            self.engine.is_draining = False
            channel.end(trouble.words, has_died=trouble.has_died)
        if trouble is _STALLED:
            await self._door.kill()
        return trouble

    async def _read(self, channel: RayChannel) -> None:
        async with contextlib.aclosing(self._door.events(channel.session)) as events:
            async for data in events:
                await channel.take(data)
                if channel.has_failed and not self.engine.is_ready:
                    self._fail(channel.condition or "its engine was given up")

    async def _watch(self, channel: RayChannel, reading: asyncio.Task[None]) -> bool:
        """Shows signs of life until the stream has ended; says whether it had to be given up for its silence.

        Before anything has come the actor may still be looking for a machine: that is no silence.
        """
        num_heard, num_silent = 0, 0
        while num_silent < self._settings.patience:
            done, _ = await asyncio.wait({reading}, timeout=self._settings.heartbeat_s)
            if done:
                return False
            if not channel.num_batches:
                continue
            is_silent = channel.num_batches == num_heard
            num_heard, num_silent = channel.num_batches, num_silent + 1 if is_silent else 0
            channel.beat()
        return True

    def _note_ready(self, _greeting: object) -> None:
        self._reason = None

    def _fail(self, reason: str) -> None:
        self._life.fail(EngineStartFailed(f"The engine {self._name} does not start with Ray: {reason}."))

    def _describe(self) -> str:
        """Returns one phrase on what is being done, without a full stop."""
        channel = self._channel
        if channel is not None and channel.num_batches:
            return "the engine is drained" if self.engine.is_draining else channel.condition or "the engine is starting"
        doing = "Ray is asked for it"
        if channel is not None:
            doing = f"its actor was asked for and has not answered yet: Ray looks for {self._door.wanted}, or it starts"
        return doing if self._reason is None else f"{doing}, after a loss: {self._reason}"
