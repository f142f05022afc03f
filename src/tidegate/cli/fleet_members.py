"""FleetMembers: engines that join the models of a running server, and engines that leave it.

An engine that joins is started outside readiness and gets requests once it is ready. One that retires gets no more;
what it has ends by itself, in every server process, and then it is ended. What was begun goes on whoever waits for it.
"""

import asyncio
from collections.abc import Awaitable, Callable

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_fleet import EngineFleet
from tidegate.cli.engine_specs import SpecError
from tidegate.cli.followers import Followers, Reached
from tidegate.cli.load_error import LoadError
from tidegate.cli.model_engines import ModelSite, engine_rows
from tidegate.contract.admin import EngineTold
from tidegate.engines.pool.member_states import MemberState
from tidegate.engines.pool.pool import EnginePool
from tidegate.errors import EngineUnavailable, RouteNotFound, UnsupportedParameter
from tidegate.lasting_task import start_lasting

MAX_ENGINES = 64
"""Engines of one model."""
LOOK_INTERVAL_S = 0.1
"""How often it is looked whether a retiring engine has finished."""


class FleetMembers:
    """Belongs to the fleet's event loop. `followers` share the fleet's engines."""

    def __init__(self, fleet: EngineFleet, followers: Followers, logger: FilteringBoundLogger) -> None:
        self._fleet = fleet
        self._followers = followers
        self._logger = logger
        self._joining: dict[str, asyncio.Task[str | None]] = {}
        self._retiring: dict[str, asyncio.Task[None]] = {}

    @property
    def is_changing(self) -> bool:
        """Whether some engine is joining or retiring."""
        return bool(self._joining or self._retiring)

    def site(self, model: str | None) -> ModelSite:
        """Returns the model of a name, or the only one. Raises RouteNotFound and UnsupportedParameter."""
        sites = self._fleet.sites
        if model is None and len(sites) == 1:
            return sites[0]
        if model is None:
            raise UnsupportedParameter("The server has several models: say which one.", param="model")
        for site in sites:
            if model in site.loaded.served.names:
                return site
        raise RouteNotFound("No model has this name.")

    async def add(self, site: ModelSite, *, url: str | None = None) -> str:
        """Begins the start of one more engine of a model; returns its name. Raises UnsupportedParameter."""
        pool = site.engines.pool
        if pool is None:
            raise UnsupportedParameter(
                "The server was started with one engine of this model and no more: engine.max_replicas allows others."
            )
        if len(site.engines.parts) >= MAX_ENGINES:
            raise UnsupportedParameter(f"The model has {MAX_ENGINES} engines: no model has more.")
        try:
            name = self._fleet.join(site, url)
        except (LoadError, SpecError) as error:
            raise UnsupportedParameter(str(error), param="url" if url is not None else None) from None
        self._joining[name] = asyncio.create_task(self._join(site, name), name=f"start of engine {name}")
        return name

    async def wait_added(self, name: str, wait_s: float | None) -> EngineTold:
        """Waits until an engine that was added is ready, or for so long. Raises EngineUnavailable if it has failed."""
        task = self._joining.get(name)
        if task is not None:
            await asyncio.wait([task], timeout=wait_s)
            if task.done() and not task.cancelled() and (reason := task.result()) is not None:
                raise EngineUnavailable(f"Engine {name} did not join and was taken out again: {reason.rstrip('.')}.")
        return self._tell(name)

    async def retire(self, name: str) -> None:
        """Gives an engine no more requests and ends it when it has none left. Raises as `check_others`."""
        site = self._fleet.site_of(name)
        pool = await self.check_others(name)
        pool.retire(name)
        if name not in self._retiring:
            self._retiring[name] = start_lasting(self._retire(site, name), f"end of engine {name}")

    async def check_others(self, name: str) -> EnginePool:
        """Returns the pool of an engine that may be taken out.

        Raises RouteNotFound, UnsupportedParameter where there is no pool, and EngineUnavailable for the last engine
        that requests can go to, in whichever server process.
        """
        pool = self._fleet.site_of(name).engines.pool
        if pool is None:
            raise UnsupportedParameter(
                "The engine is the only one of its model: drain the server, or restart the engine."
            )
        reached = await self.settle()
        if reached is None:
            raise EngineUnavailable("A server process does not answer: what it still needs is not known.")
        for one in pool.members():
            if one.name != name and one.is_usable and (one.name not in reached or reached[one.name].is_ready):
                return pool
        raise EngineUnavailable("No other engine of this model is ready: its requests would have nowhere to go.")

    async def wait_retired(self, name: str, wait_s: float | None) -> EngineTold:
        """Waits until an engine that is retiring has ended or was returned, or for so long. All have been told then."""
        task = self._retiring.get(name)
        if task is not None:
            await asyncio.wait([task], timeout=wait_s)
        reached = await self.settle() or {}
        told = self._tell(name)
        return EngineTold(name, told.state, told.requests + (reached[name].num_requests if name in reached else 0))

    async def requests_of(self, site: ModelSite, name: str) -> int | None:
        """Returns how many requests an engine has, over all server processes; None while that is not known."""
        reached = await self.settle()
        if reached is None:
            return None
        pool = site.engines.pool
        own = sum(one.num_requests for one in pool.members() if one.name == name) if pool is not None else 0
        return own + (reached[name].num_requests if name in reached else 0)

    async def wait_reached(self, name: str) -> None:
        """Waits until every server process can use an engine that is ready, and no operator has taken out."""

        async def is_reached() -> bool:
            reached = await self.settle()
            return reached is not None and (name not in reached or reached[name].is_ready)

        await self._until(is_reached)

    async def settle(self) -> dict[str, Reached] | None:
        """Tells the followers what there is; returns how they have each engine, None while that is not known."""
        return await self._followers.settle(self._fleet.ties())

    async def aclose(self) -> None:
        """Ends what is under way, before the fleet ends its engines."""
        tasks = [*self._joining.values(), *self._retiring.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _join(self, site: ModelSite, name: str) -> str | None:
        """Returns why the engine was taken out again; None when it is in."""
        keeper = self._fleet.keepers[name]
        try:
            await keeper.start()
            await keeper.wait_ready()
            self._check_revision(site, name)
            await self.wait_reached(name)
        except Exception as error:  # whatever the kind of engine raises: the server goes on without it
            self._logger.error("engine did not join", engine=name, reason=str(error))
            await self._end(site, name)
            return str(error)
        finally:
            self._joining.pop(name, None)
        self._logger.info("engine joined", engine=name)
        return None

    def _check_revision(self, site: ModelSite, name: str) -> None:
        """Raises EngineUnavailable for an engine that its pool would leave out as long as another is ready."""
        pool = site.engines.pool
        conflict = None if pool is None else pool.conflict_of(name)
        if conflict is not None:
            raise EngineUnavailable(conflict)

    async def _retire(self, site: ModelSite, name: str) -> None:
        try:
            await self._until(lambda: self._is_idle(site, name))
            if self._state(site, name) is MemberState.RETIRING:
                await self._end(site, name)
                self._logger.info("engine retired", engine=name)
        finally:
            self._retiring.pop(name, None)

    async def _end(self, site: ModelSite, name: str) -> None:
        joining = self._joining.pop(name, None)
        if joining is not None and joining is not asyncio.current_task():
            joining.cancel()
            await asyncio.gather(joining, return_exceptions=True)
        site.engines.leave(name)
        await self.settle()  # others let go of it before it ends
        await self._fleet.part(site, name)

    async def _is_idle(self, site: ModelSite, name: str) -> bool:
        """Whether an engine has nothing left, or is to stay after all."""
        number = await self.requests_of(site, name)
        return number == 0 or self._state(site, name) is not MemberState.RETIRING

    async def _until(self, check: Callable[[], Awaitable[bool]]) -> None:
        while not await check():  # noqa: ASYNC110 - others say it when they are asked
            await asyncio.sleep(LOOK_INTERVAL_S)

    def _tell(self, name: str) -> EngineTold:
        for site in self._fleet.sites:
            for row in engine_rows(site):
                if row.name == name:
                    return EngineTold(name, row.state, row.requests)
        return EngineTold(name, MemberState.GONE.value, 0)

    def _state(self, site: ModelSite, name: str) -> MemberState:
        members = [] if site.engines.pool is None else site.engines.pool.members()
        return next((one.state for one in members if one.name == name), MemberState.GONE)
