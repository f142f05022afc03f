"""FleetRoll: restarts the engines of a server one after the other without a cut stream, as `roll_states.py` says.

Each engine is drained: it gets no more requests, and what it has ends by itself in every server process. Then it is
restarted, and serves again once it is ready; only then it is the next one's turn. A new engine that is not ready in
time, or serves what its pool does not, ends the roll: the engines that were not reached go on as they are. The last
engine that requests can go to is never restarted: where only one is there, a further one is started first. It retires
when the roll is over, however that ends, unless it is then the only one that serves.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_acts import Acts, RemoteActs
from tidegate.cli.engine_fleet import EngineFleet
from tidegate.cli.fleet_members import LOOK_INTERVAL_S, FleetMembers
from tidegate.cli.model_engines import ModelSite
from tidegate.contract.admin import RollTold
from tidegate.engines.pool.member_states import MemberState
from tidegate.engines.pool.pool import EnginePool
from tidegate.engines.pool.roll_states import ROLL, RollEvent, RollPhase
from tidegate.errors import EngineUnavailable, ServeError, UnsupportedParameter
from tidegate.lasting_task import start_lasting

READY_S = 600.0
"""How long a new engine may take to be ready, unless the operator says otherwise."""
_NONE = RollTold("none", None, [], [], None)


class RollStopped(Exception):
    """The roll is over; the message says why."""


class FleetRoll:
    """Belongs to the fleet's event loop. One roll at a time. `acts_of` is what can be done to one engine."""

    def __init__(
        self,
        fleet: EngineFleet,
        members: FleetMembers,
        acts_of: Callable[[str], Acts],
        logger: FilteringBoundLogger,
    ) -> None:
        self._fleet = fleet
        self._members = members
        self._acts_of = acts_of
        self._logger = logger
        self._task: asyncio.Task[None] | None = None
        self._phase: RollPhase | None = None
        self._engine: str | None = None
        self._done: list[str] = []
        self._left: list[str] = []
        self._reason: str | None = None
        self._further: str | None = None
        """The engine that stands in while others are restarted."""

    def begin(self, sites: Sequence[ModelSite], ready_s: float) -> None:
        """Begins a roll over the engines of some models.

        Raises EngineUnavailable while one is under way or an engine has nobody to take its requests, and
        UnsupportedParameter for engines that are not restarted here.
        """
        if self._task is not None and not self._task.done():
            raise EngineUnavailable("The engines are being restarted one after the other already.")
        for site in sites:
            self._check(site)
        self._phase, self._reason = RollPhase.DRAINING, None
        self._done, self._left = [], [name for site in sites for name in site.engines.parts]
        self._task = start_lasting(self._run(sites, ready_s), "roll of the engines")

    def told(self) -> RollTold:
        """Returns how far the last roll is."""
        if self._phase is None:
            return _NONE
        return RollTold(self._phase.value, self._engine, list(self._done), list(self._left), self._reason)

    async def wait(self, wait_s: float) -> RollTold:
        """Waits until the roll has ended, or for so long."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=wait_s)
        return self.told()

    async def stop(self) -> RollTold:
        """Ends the roll that is under way. One that is being drained goes on; one that starts serves when ready."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        return self.told()

    async def aclose(self) -> None:
        """Ends what is under way; the fleet is to be closed before."""
        await self.stop()

    def _check(self, site: ModelSite) -> None:
        pool = site.engines.pool
        if pool is None:
            raise UnsupportedParameter(
                "The server was started with one engine of this model and no more: its restart cuts streams, "
                "unless engine.max_replicas allows for another."
            )
        for name in site.engines.parts:
            if isinstance(self._acts_of(name), RemoteActs):
                raise UnsupportedParameter(f"Engine {name} runs elsewhere: it is restarted there.")
        if not _usable(pool):
            raise EngineUnavailable("No engine of this model is ready.")

    async def _run(self, sites: Sequence[ModelSite], ready_s: float) -> None:
        try:
            for site in sites:
                await self._roll_model(site, ready_s)
            self._apply(RollEvent.NONE_LEFT)
            self._logger.info("engines rolled", engines=self._done)
        except (RollStopped, ServeError) as stop:
            self._reason = str(stop)
            self._apply(RollEvent.FAILED)
            self._logger.error("roll of the engines ended early", engine=self._engine, reason=self._reason)
        except Exception:
            self._reason = "an internal error, which is in the log"
            self._apply(RollEvent.FAILED)
            raise
        except asyncio.CancelledError:
            self._reason = "an operator stopped it, or the server ends"
            self._apply(RollEvent.STOPPED)
        finally:
            self._engine = None
            await self._dismiss()

    async def _roll_model(self, site: ModelSite, ready_s: float) -> None:
        pool = site.engines.pool
        if pool is None:
            return
        names = [name for name in site.engines.parts if name in self._left]
        if len(_usable(pool)) == 1:
            self._further = await self._members.add(site)
            told = await self._members.wait_added(self._further, ready_s)
            if self._further not in _usable(pool):
                raise RollStopped(f"engine {self._further}, which was to stand in, is {told.state} after {ready_s:g} s")
        for name in names:
            if name in site.engines.parts:
                await self._roll_engine(pool, site, name, ready_s)
            self._left.remove(name)
        further = await self._dismiss()
        if further is not None:
            await self._members.wait_retired(further, None)

    async def _dismiss(self) -> str | None:
        """Has the engine that stood in retire, and returns its name; None where there is none, or it is needed."""
        further, self._further = self._further, None
        try:
            if further is not None:
                await self._members.retire(further)
        except ServeError as refusal:
            self._logger.warning("the engine that stood in stays", engine=further, reason=str(refusal))
            return None
        return further

    async def _roll_engine(self, pool: EnginePool, site: ModelSite, name: str, ready_s: float) -> None:
        """One that an operator took out before stays out, and one that retires is left to that."""
        state = next(one.state for one in pool.members() if one.name == name)
        if state is MemberState.RETIRING:
            return
        self._engine = name
        pool.drain(name)
        try:
            await self._wait_empty(pool, site, name)
            self._apply(RollEvent.EMPTY)
            reply = await self._acts_of(name).restart_engine(ready_s, spares_others=True)
            fault = None if reply.status == 200 else f"engine {name} was not ready within {ready_s:g} s"
            fault = fault or pool.conflict_of(name)
            if fault is not None:
                raise RollStopped(fault)
        finally:
            if name in site.engines.parts and state is not MemberState.DRAINING:
                pool.restore(name)
            with contextlib.suppress(asyncio.CancelledError):
                await self._members.settle()
        try:
            if state is not MemberState.DRAINING:
                async with asyncio.timeout(ready_s):  # wait_for may swallow the caller's own end
                    await self._members.wait_reached(name)
        except TimeoutError:
            raise RollStopped(f"some server process has not reached engine {name} within {ready_s:g} s") from None
        self._done.append(name)
        self._apply(RollEvent.READY)

    async def _wait_empty(self, pool: EnginePool, site: ModelSite, name: str) -> None:
        """Waits until an engine that is drained has nothing left. Raises RollStopped when nobody else serves."""
        while True:
            is_empty = await self._members.requests_of(site, name) == 0
            if not _usable(pool):
                self._apply(RollEvent.ALONE)
                raise RollStopped("no other engine of the model is left that requests could go to")
            if is_empty:
                return
            await asyncio.sleep(LOOK_INTERVAL_S)

    def _apply(self, event: RollEvent) -> None:
        if self._phase is not None:
            self._phase = ROLL[self._phase].get(event, self._phase)


def _usable(pool: EnginePool) -> list[str]:
    return [one.name for one in pool.members() if one.is_usable]
