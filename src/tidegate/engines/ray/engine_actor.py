"""EngineActor: the class that Ray makes an actor of: an engine, offered to servers. Imports nothing of Ray.

All methods run on the actor's one event loop. What crosses is bytes (`wire.py`). The engine is started by the first
call, also after Ray has restarted the process: that is a new boot.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

from tidegate.engines.ray.actor_spec import HostedEngineSpec, decode_spec
from tidegate.engines.ray.engine_host import EngineHost
from tidegate.engines.ray.hosted_engine import HostedEngine, make_hosted
from tidegate.lasting_task import start_lasting
from tidegate.system import entropy

BOOT_BYTES = 8
AWAY_S = 5.0
"""How long an engine that was ended may take to be gone for the host as well."""


class SpecMismatch(Exception):
    """The server wants another engine than the one that lives under this name."""


class EngineActor:
    """`spec` is an encoded `HostedEngineSpec`."""

    def __init__(self, spec: bytes) -> None:
        self._spec = decode_spec(spec)
        self._digest = self._spec.digest
        self._boot = entropy(BOOT_BYTES).hex()
        self._hosted: HostedEngine | None = None
        self._host: EngineHost | None = None
        self._beginning = asyncio.Lock()
        self._draining = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def events(self, session: str, digest: str) -> AsyncIterator[bytes]:
        """One server's stream of events; its end is the session's. Raises SpecMismatch, SessionRefused, HostRetired."""
        if digest != self._digest:
            raise SpecMismatch("the engine was made with other settings")
        host = await self._begun()
        async with contextlib.aclosing(host.events(session)) as stream:
            async for data in stream:
                yield data

    async def tell(self, data: bytes) -> None:
        """Carries out a batch of commands."""
        if self._host is not None:
            self._host.take(data)

    async def restart_engine(self, drain_s: float | None) -> bool:
        """Ends the engine and starts the next one, in this same process.

        `drain_s`: how long what is open, of all servers, may take to end first; where it does not, everything is left
        as it was, and False returned. None: it is cut.
        """
        host = await self._begun()
        if drain_s is None:
            await self._restart(host)
            return True
        async with self._draining:
            try:
                if not await host.drain(drain_s):
                    return False
                epoch = host.epoch
                await self._restart(host)
                await host.wait_away(epoch, AWAY_S)
            finally:
                host.resume()
        return True

    async def retire(self, digest: str, patience_s: float) -> bool:
        """Ends the engine for good where no server uses it, or none does within `patience_s`; says whether.

        One that was made with other settings is not the asker's to end.
        """
        if digest != self._digest:
            return False
        is_alone = self._host is None or await self._host.retire(patience_s)
        if is_alone:
            await self.stop()
        return is_alone

    async def stop(self) -> None:
        """Ends the engine; open requests fail."""
        for task in self._tasks:
            task.cancel()
        if self._hosted is not None and self._host is not None:
            self._host.is_asked_to_end = True
            await self._hosted.aclose()

    async def identify(self) -> tuple[str, int, int, int]:
        """Returns the boot, the process's id, the number of open requests and that of servers: for operators."""
        host = self._host
        return self._boot, os.getpid(), 0 if host is None else host.num_active, 0 if host is None else host.num_sessions

    def make_hosted(self, spec: HostedEngineSpec) -> HostedEngine:
        """Returns the engine, not started. A further kind is a subclass that knows it. Raises UnknownKind."""
        return make_hosted(spec)

    async def _begun(self) -> EngineHost:
        async with self._beginning:
            if self._host is not None:
                return self._host
            loop = asyncio.get_running_loop()
            hosted = self.make_hosted(self._spec)
            host = EngineHost(hosted.engine, self._boot, self._spec.lease_s, loop.call_exception_handler)
            await hosted.start()
            self._hosted, self._host = hosted, host
            self._note(start_lasting(host.run(), "leases"))
            self._note(start_lasting(self._await_ready(), "start of the engine"))
            return host

    async def _restart(self, host: EngineHost) -> None:
        if self._hosted is not None:
            host.is_asked_to_end = True
            await self._hosted.restart()
            self._note(start_lasting(self._await_ready(), "start of the engine"))

    async def _await_ready(self) -> None:
        """Tells the servers when the engine was given up: only a person can help then."""
        if self._hosted is None or self._host is None:
            return
        try:
            self._host.has_failed = False
            await self._hosted.wait_ready()
        except Exception as fault:
            self._host.has_failed = True
            asyncio.get_running_loop().call_exception_handler(
                {"message": "the engine was given up", "exception": fault}
            )

    def _note(self, task: "asyncio.Task[None]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
