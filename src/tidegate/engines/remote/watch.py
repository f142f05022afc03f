"""RemoteWatch: finds out that a remote engine is there, is the right one, goes away, and comes back.

It asks the engine to introduce itself, declares it ready under the next epoch, and then looks at its health again and
again, at once where an exchange broke. An engine that does not answer, says that it is ill, was started anew, or gives
no output for too long is lost; another model under the same address is never served.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.engines.life.backoff import Backoff
from tidegate.engines.life.engine_life import EngineLife
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.remote.ask import Ask, EngineAway, EngineUnfit
from tidegate.engines.remote.client import RemoteEngine
from tidegate.engines.remote.dialect import Introduction, Recognition, RemoteKind
from tidegate.engines.remote.http_carrier import HttpCarrier
from tidegate.engines.remote.lookout import Lookout
from tidegate.engines.remote.whereabouts import RemoteCondition, RemotePhase, compare_identity


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """`answer_timeout_s`: how long a question may take. `stall_timeout_s`: how long all that is open may be silent.

    After a failed attempt the next one waits `first_wait_s`, doubled each time up to `max_wait_s`.
    """

    health_interval_s: float = 1.0
    answer_timeout_s: float = 30.0
    stall_timeout_s: float = 60.0
    first_wait_s: float = 0.25
    max_wait_s: float = 5.0


class RemoteWatch:
    """Used on one event loop: `start`, then `engine` as the Engine port, then `aclose`.

    `take_note` gets what an operator should know of an engine that has just become ready.
    """

    def __init__(
        self,
        engine: RemoteEngine,
        kind: RemoteKind,
        carrier: HttpCarrier,
        settings: WatchSettings,
        take_note: Callable[[str], None],
    ) -> None:
        self.engine = engine
        self._kind = kind
        self._settings = settings
        self._take_note = take_note
        self._carrier = carrier
        self._url = carrier.pool.endpoint.url
        self._ask = Ask(carrier.pool, settings.answer_timeout_s)
        self._first: Recognition | None = None
        self._condition = RemoteCondition(self._url)
        self._lookout = Lookout(engine, settings.health_interval_s, settings.stall_timeout_s)
        self._backoff = Backoff(settings.first_wait_s, settings.max_wait_s)
        self._life = EngineLife("watch over the engine", engine, self._live)

    def start(self) -> None:
        """Begins to look for the engine, and returns at once."""
        loop = asyncio.get_running_loop()
        self.engine.describe = lambda: self._condition.describe(loop.time())
        self._life.start()

    async def wait_ready(self) -> None:
        """Waits until the engine takes requests. Raises EngineStartFailed when it cannot be served."""
        await self._life.wait_ready()

    async def aclose(self) -> None:
        """Ends the watch and the engine. Open requests fail. Idempotent."""
        await self._life.aclose()
        await self.engine.aclose()

    async def _live(self) -> float | EngineStartFailed:
        """See `Live`: from finding it to losing it. Unfit at first, it is given up; later it is sought again."""
        try:
            introduction = await self._find()
        except EngineAway as error:
            self._condition = RemoteCondition(self._url, RemotePhase.AWAY, str(error))
        except EngineUnfit as error:
            self._condition = RemoteCondition(self._url, RemotePhase.UNFIT, str(error))
            if self._first is None:
                return EngineStartFailed(f"The engine at {self._url} cannot be served: {error}.")
        else:
            self._backoff.reset()
            await self._serve(introduction)
        wait_s = self._backoff.next_wait_s()
        self._condition = self._condition.again_at(asyncio.get_running_loop().time() + wait_s)
        return wait_s

    async def _find(self) -> Introduction:
        introduction = await self._kind.introduce(self._ask)
        if self._first is not None:
            compare_identity(self._first, introduction.recognition)
        return introduction

    async def _serve(self, introduction: Introduction) -> None:
        reason: str | None = None
        try:
            self._begin(introduction)
            reason = await self._stay(introduction.recognition)
        finally:
            was_asked, reason = reason is None, reason or "this server ends"
            self._condition = RemoteCondition(self._url, RemotePhase.AWAY, reason)
            self.engine.lose(reason, was_asked=was_asked)

    def _begin(self, introduction: Introduction) -> None:
        self._first = self._first or introduction.recognition
        self._condition = RemoteCondition(self._url, RemotePhase.READY)
        self._carrier.dialect = introduction.dialect
        self.engine.begin(introduction.model, f"{self._url} {introduction.recognition.boot}")
        for note in introduction.notes:
            self._take_note(note)

    async def _stay(self, recognition: Recognition) -> str:
        """Returns when the engine is lost, with the reason."""
        while True:
            had_trouble = await self._lookout.wait()
            if self._lookout.finds_stall():
                return f"it gave no output for {self._settings.stall_timeout_s:g} s"
            reason = await self._illness(recognition, is_thorough=had_trouble)
            if reason is not None:
                return reason
            if had_trouble and not self._lookout.has_trouble:
                self.engine.note_well()

    async def _illness(self, recognition: Recognition, *, is_thorough: bool) -> str | None:
        """Returns what is wrong, or None. A thorough look asks again who answers."""
        try:
            await self._ask.expect_health(self._kind.health_path)
            now = await self._kind.recognise(self._ask) if is_thorough or self._is_new_connection() else recognition
            compare_identity(recognition, now)
        except (EngineAway, EngineUnfit) as error:
            return str(error)
        if now.boot != recognition.boot:
            return "it was started anew"
        return None

    def _is_new_connection(self) -> bool:
        """Whether the health was asked on a connection made just now: the last one ended, maybe with the engine."""
        return self._ask.was_dialled
