"""What an operator can do to a supervised engine, whoever serves in front of it."""

import asyncio
import contextlib
from typing import Protocol, runtime_checkable

from tidegate.contract.admin import CacheDropped, EngineRestarted
from tidegate.contract.codec import encode_json
from tidegate.engine.port import Engine
from tidegate.engines.life.start_failed import EngineStartFailed
from tidegate.engines.local.client import LocalEngine
from tidegate.errors import EngineUnavailable, UnsupportedParameter
from tidegate.serving.reply import WholeReply

FLUSH_TIMEOUT_S = 30.0
"""An engine answers between steps; how long an operator's flush waits for that."""


class Acts(Protocol):
    """What an operator asks to be done to the engine; the answers are replies of the admin listener."""

    async def flush_cache(self) -> WholeReply:
        """Raises EngineUnavailable, and UnsupportedParameter where it is not ours to do."""
        ...

    async def restart_engine(self, wait_s: float, *, spares_others: bool = False) -> WholeReply:
        """As `flush_cache`. `spares_others`: what other servers have in the engine ends first, within `wait_s`; where
        it does not, nothing is restarted, and EngineUnavailable raised.
        """
        ...

    async def aclose(self) -> None:
        """Waits for what is under way; whoever keeps the engine is to be closed before."""
        ...


@runtime_checkable
class Restartable(Protocol):
    """Who keeps an engine that can be restarted from here: see `Supervisor`."""

    @property
    def engine(self) -> Engine: ...

    @property
    def is_starting(self) -> bool: ...

    @property
    def coming_epoch(self) -> int: ...

    async def restart(self) -> None: ...

    async def wait_ready(self) -> None: ...


@runtime_checkable
class SharedRestartable(Protocol):
    """The same of an engine that other servers use as well: see `RayKeeper`."""

    async def restart_drained(self, patience_s: float) -> bool: ...


class Restarts:
    """An operator's restarts, for whoever can flush a cache as well: see `Acts`. Belongs to the keeper's event loop."""

    def __init__(self, keeper: Restartable) -> None:
        self._keeper = keeper
        self._restart: asyncio.Task[None] | None = None

    async def restart_engine(self, wait_s: float, *, spares_others: bool = False) -> WholeReply:
        """Ends the engine and starts the next one; joins a restart that is under way."""
        keeper = self._keeper
        epoch = keeper.coming_epoch
        if spares_others and isinstance(keeper, SharedRestartable):
            if not await keeper.restart_drained(wait_s):
                raise EngineUnavailable(
                    f"Other servers still had requests in the engine after {wait_s:g} s: it was not restarted."
                )
        elif not keeper.is_starting:
            self._restart = asyncio.create_task(keeper.restart(), name="restart of the engine")
        with contextlib.suppress(TimeoutError, EngineStartFailed):
            async with asyncio.timeout(wait_s):
                if self._restart is not None:
                    await asyncio.shield(self._restart)
                await keeper.wait_ready()
        status = keeper.engine.statistics()
        if status.is_ready and status.epoch >= epoch:
            return WholeReply(encode_json(EngineRestarted("ready", status.epoch)))
        return WholeReply(encode_json(EngineRestarted("restarting", epoch)), status=202)

    async def aclose(self) -> None:
        """Waits for a restart that is under way; the keeper is to be closed before."""
        if self._restart is not None:
            await asyncio.gather(self._restart, return_exceptions=True)


class EngineActs(Restarts):
    """An operator's acts on an engine process of ours, here or on Ray."""

    def __init__(self, keeper: Restartable, engine: LocalEngine) -> None:
        super().__init__(keeper)
        self._engine = engine

    async def flush_cache(self) -> WholeReply:
        """Drops what the engine keeps for reuse. Raises EngineUnavailable and UnsupportedParameter."""
        if not getattr(self._keeper, "can_flush", True):
            raise UnsupportedParameter("This engine's cache is dropped by a restart of it, and in no other way.")
        answer: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

        def take(num_blocks: int | None) -> None:
            if not answer.done():
                answer.set_result(num_blocks)

        epoch = self._engine.statistics().epoch
        self._engine.flush_cache(take)
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT_S):
                num_blocks = await answer
        except TimeoutError:
            raise EngineUnavailable("The engine has not answered in time; the flush may still happen.") from None
        if num_blocks is None:
            raise EngineUnavailable("The engine was lost meanwhile, and its cache with it.")
        return WholeReply(encode_json(CacheDropped(num_blocks, epoch)))


class RemoteActs(Acts):
    """An operator's acts that belong to where the engine runs."""

    async def flush_cache(self) -> WholeReply:
        raise UnsupportedParameter("The engine runs elsewhere: its cache is dropped there.")

    async def restart_engine(
        self,
        wait_s: float,  # noqa: ARG002 - the port's argument
        *,
        spares_others: bool = False,  # noqa: ARG002 - the same
    ) -> WholeReply:
        raise UnsupportedParameter("The engine runs elsewhere: it is restarted there.")

    async def aclose(self) -> None:
        return None
