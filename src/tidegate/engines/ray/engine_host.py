"""EngineHost: any engine, offered to several servers: the inside of an engine actor, without Ray.

Each server has a session: it sends batches of commands, and reads one stream of events that carries all of its
requests. A session ends when its server ends it, when the server is silent longer than the lease, or when it leaves too
much unread; then its requests are aborted and forgotten. While the host drains it takes nothing new; once retired it
opens no further session.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, Protocol, runtime_checkable

from tidegate.engine.gauges import EngineStatus
from tidegate.engine.messages import (
    AbortRequest,
    AddRequest,
    CacheFlushed,
    Command,
    EngineReady,
    FlushCache,
    Ping,
    Pong,
)
from tidegate.engine.port import WatchedEngine
from tidegate.engines.ray.host_session import MAX_UNREAD_DELTAS, HostedRequest, HostSession
from tidegate.engines.ray.lease_book import LeaseBook
from tidegate.engines.ray.wire import decode_commands, encode_events
from tidegate.errors import EngineUnavailable, InternalError, ServeError

MAX_SESSIONS = 512
"""Servers at one engine."""
TICKS_A_LEASE = 8
MAX_TICK_S = 0.25
"""How late at most a server hears of accounts and conditions that came without an output."""


class SessionRefused(Exception):
    """The host takes no further session."""


class HostRetired(Exception):
    """The engine ends for good, and nobody gets a session with it."""


@runtime_checkable
class FlushingEngine(Protocol):
    """An engine that can be told to drop what it keeps for reuse; see `LocalEngine.flush_cache`."""

    def flush_cache(self, on_answer: Callable[[int | None], None]) -> None: ...


class EngineHost:
    """Belongs to one event loop. `boot` names this start of the process. `report`: as a loop's exception handler."""

    def __init__(
        self,
        engine: WatchedEngine,
        boot: str,
        lease_s: float,
        report: Callable[[dict[str, Any]], None],
    ) -> None:
        self.boot = boot
        self.epoch = 0
        self.is_draining = False
        self.has_failed = False
        """Set by whoever keeps the engine when it was given up."""
        self.is_asked_to_end = False
        """Set by whoever ends the engine on purpose: its next loss is nobody's fault."""
        self._engine = engine
        self._lease_s = lease_s
        self._report = report
        self._leases = LeaseBook(lease_s)
        self._sessions: dict[str, HostSession] = {}
        self._greeting: EngineReady | None = None
        self._is_retired = False
        self._progress = asyncio.Event()
        engine.on_ready.append(self._note_ready)
        engine.on_lost.append(self._note_lost)

    @property
    def num_active(self) -> int:
        """Requests of all servers that have not ended."""
        return sum(len(session.requests) for session in self._sessions.values())

    @property
    def num_sessions(self) -> int:
        return len(self._sessions)

    def status(self) -> EngineStatus:
        """See `EngineLook.status`."""
        return self._engine.statistics()

    async def events(self, name: str) -> AsyncGenerator[bytes, None]:
        """Opens a session, and yields what its server is to be told until the session ends. Closing it ends it.

        Raises SessionRefused and HostRetired.
        """
        if self._is_retired:
            raise HostRetired("the engine ends")
        if name in self._sessions or len(self._sessions) >= MAX_SESSIONS:
            raise SessionRefused("this session is open already" if name in self._sessions else "too many sessions")
        session = self._sessions[name] = HostSession(name, self)
        self._leases.renew(name, self._now())
        if self._greeting is not None:
            session.tell(self._greeting)
        try:
            while (batch := await session.next_batch()) is not None:
                yield encode_events(batch)
        finally:
            self.leave(name)

    def take(self, data: bytes) -> None:
        """Carries out a batch of commands; those of a session that is not open are nobody's. Raises FramingError."""
        batch = decode_commands(data)
        session = self._sessions.get(batch.session)
        if session is None:
            return
        self._leases.renew(batch.session, self._now())
        for commands in session.order.take(batch.number, batch.commands):
            for command in commands:
                self._carry_out(session, command)
        session.stir()

    def leave(self, name: str) -> None:
        """Ends a session: aborts and forgets its requests. Idempotent."""
        session = self._sessions.pop(name, None)
        if session is None:
            return
        self._leases.drop(name)
        session.end()
        for hosted in session.requests.values():
            hosted.detach()
            self._engine.abort(hosted.engine_id)
        session.requests.clear()
        self._progress.set()

    async def run(self) -> None:
        """Looks after leases, readers that are behind, and news without an output, until cancelled."""
        tick_s = min(MAX_TICK_S, self._lease_s / TICKS_A_LEASE)
        while True:
            await asyncio.sleep(tick_s)
            for name in self._leases.expired(self._now()):
                self._report({"message": f"a server was silent for {self._lease_s:g} s; its requests are aborted"})
                self.leave(name)
            for session in list(self._sessions.values()):
                if session.num_unread > MAX_UNREAD_DELTAS:
                    self._report({"message": f"a server left {session.num_unread} outputs unread and is given up"})
                    self.leave(session.name)
                session.stir()
            self._progress.set()

    async def drain(self, timeout_s: float) -> bool:
        """Takes nothing new, and waits until everything has ended; says whether it has, in time. To be undone by
        `resume`.
        """
        self.is_draining = True
        self._stir()
        return await self._wait_until(lambda: not self.num_active, timeout_s)

    def resume(self) -> None:
        """The end of a drain. Idempotent."""
        self.is_draining = False
        self._stir()

    async def wait_away(self, epoch: int, timeout_s: float) -> None:
        """Waits until the engine of an epoch is lost, at most for so long."""
        await self._wait_until(lambda: self._greeting is None or self.epoch != epoch, timeout_s)

    async def retire(self, timeout_s: float) -> bool:
        """Opens no further session once there is none; says whether it came to that in time."""
        self._is_retired = await self._wait_until(lambda: not self._sessions, timeout_s)
        return self._is_retired

    async def _wait_until(self, check: Callable[[], bool], timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                while not check():
                    self._progress.clear()
                    await self._progress.wait()
        except TimeoutError:
            return False
        return True

    def _stir(self) -> None:
        for session in self._sessions.values():
            session.stir()

    def _carry_out(self, session: HostSession, command: Command) -> None:
        if isinstance(command, AddRequest):
            self._add(session, command)
        elif isinstance(command, Ping):
            session.tell(Pong(command.nonce, self.status().gauges))
        elif isinstance(command, FlushCache):
            self._flush(session, command)
        else:
            hosted = session.requests.get(command.request_id)
            if hosted is None:
                return
            if isinstance(command, AbortRequest):
                self._engine.abort(hosted.engine_id, command.choice)
            else:
                self._engine.hold(hosted.engine_id, held=command.held)

    def _add(self, session: HostSession, command: AddRequest) -> None:
        request = command.request
        if request.request_id in session.requests:
            return  # it runs already: once is enough
        hosted = HostedRequest(session, request)
        session.requests[request.request_id] = hosted
        try:
            if self.is_draining:
                raise EngineUnavailable("The engine takes no further requests.")
            self._engine.submit(hosted.for_engine(request), hosted)
        except ServeError as error:
            hosted.fail(error)
        except Exception as fault:
            self._report({"message": "the engine raised at a submit", "exception": fault})
            hosted.fail(InternalError("An internal error."))

    def _flush(self, session: HostSession, command: FlushCache) -> None:
        def answer(num_blocks: int | None) -> None:
            session.tell(CacheFlushed(command.nonce, num_blocks or 0))

        try:
            if isinstance(self._engine, FlushingEngine):
                self._engine.flush_cache(answer)
                return
        except ServeError:
            pass  # it is not ready: there is nothing in its cache
        answer(0)

    def _note_ready(self, greeting: EngineReady) -> None:
        self._greeting = greeting
        self.is_asked_to_end = False
        self.epoch = greeting.epoch
        for session in self._sessions.values():
            session.tell(greeting)

    def _note_lost(self, reason: str) -> None:
        self._greeting = None
        was_asked, self.is_asked_to_end = self.is_asked_to_end, False
        for session in self._sessions.values():
            for hosted in session.requests.values():
                hosted.detach()
            session.note_away(reason, was_asked=was_asked)
        self._progress.set()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
