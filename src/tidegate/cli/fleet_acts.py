"""FleetActs: what an operator can do to the engines of a server, to all of them or to one by its name."""

import asyncio
import json

from tidegate.cli.engine_acts import Acts
from tidegate.cli.engine_fleet import EngineFleet
from tidegate.cli.engine_keeper import make_acts
from tidegate.cli.model_engines import ModelSite
from tidegate.contract.admin import CacheDropped, EngineAct, EngineRestarted, EngineTold
from tidegate.contract.codec import encode_json
from tidegate.engines.pool.pool import EnginePool
from tidegate.errors import EngineUnavailable, RouteNotFound, ServeError, UnsupportedParameter
from tidegate.serving.reply import WholeReply

RESTART_WAIT_S = 600.0
"""How long the next of several engines waits for the one before it to be ready again."""


class FleetActs:
    """Belongs to the fleet's event loop."""

    def __init__(self, fleet: EngineFleet) -> None:
        self._fleet = fleet
        self._acts: dict[str, Acts] = {name: make_acts(keeper) for name, keeper in fleet.keepers.items()}
        self._rolling: asyncio.Task[None] | None = None

    async def flush_cache(self) -> WholeReply:
        """Drops what the engines keep for reuse. Raises what the first of them says when none could."""
        if len(self._acts) == 1:
            return await self._flush(next(iter(self._acts)))
        outcomes = await asyncio.gather(*(self._flush(name) for name in self._acts), return_exceptions=True)
        done = [json.loads(one.body) for one in outcomes if isinstance(one, WholeReply)]
        if not done:
            raise next(one for one in outcomes if isinstance(one, BaseException))
        dropped = CacheDropped(sum(one["freed_blocks"] for one in done), sum(one["epoch"] for one in done))
        return WholeReply(encode_json(dropped))

    async def restart_engine(self, wait_s: float) -> WholeReply:
        """Restarts the engine; of several one after the other, each when the one before is ready again."""
        if len(self._acts) == 1:
            return await next(iter(self._acts.values())).restart_engine(wait_s)
        if self._rolling is None or self._rolling.done():
            self._rolling = asyncio.create_task(self._restart_all(), name="restart of the engines")
        await asyncio.wait([self._rolling], timeout=wait_s)
        status = "ready" if self._rolling.done() else "restarting"
        epoch = sum(site.engines.engine.statistics().epoch for site in self._fleet.sites)
        return WholeReply(encode_json(EngineRestarted(status, epoch)), status=200 if self._rolling.done() else 202)

    async def act_on_engine(self, name: str, act: EngineAct, wait_s: float) -> WholeReply:
        """See the operator port. Draining and ejecting need another engine of the same model."""
        site = self._site(name)
        if act is EngineAct.FLUSH:
            return await self._flush(name)
        if act is EngineAct.RESTART:
            return await self._acts[name].restart_engine(wait_s)
        return WholeReply(encode_json(tell_engine(site, name, act)))

    async def aclose(self) -> None:
        """Ends what is under way; the fleet is to be closed before."""
        if self._rolling is not None:
            self._rolling.cancel()
            await asyncio.gather(self._rolling, return_exceptions=True)
        for acts in self._acts.values():
            await acts.aclose()

    async def _flush(self, name: str) -> WholeReply:
        reply = await self._acts[name].flush_cache()
        pool = self._site(name).engines.pool
        if pool is not None:
            pool.forget_prefixes(name)
        return reply

    async def _restart_all(self) -> None:
        for acts in self._acts.values():
            try:
                await acts.restart_engine(RESTART_WAIT_S)
            except ServeError:
                continue  # an engine that runs elsewhere

    def _site(self, name: str) -> ModelSite:
        for site in self._fleet.sites:
            if name in site.engines.parts:
                return site
        raise RouteNotFound("No engine has this name.")


def tell_engine(site: ModelSite, name: str, act: EngineAct, *, is_sure: bool = False) -> EngineTold:
    """Drains, ejects or returns an engine of a pool. Raises UnsupportedParameter where it is alone, and, unless
    somebody `is_sure`, EngineUnavailable where it is the last one that requests can go to.
    """
    pool = site.engines.pool
    if pool is None:
        raise UnsupportedParameter("The engine is the only one of its model: drain the server, or restart the engine.")
    taken = None
    if act is EngineAct.RETURN:
        pool.restore(name)
    else:
        if not is_sure:
            _refuse_last(pool, name)
        if act is EngineAct.EJECT:
            taken = pool.eject(name)
        else:
            pool.drain(name)
    one = next(member for member in pool.members() if member.name == name)
    return EngineTold(name, one.state.value, one.num_requests, taken)


def _refuse_last(pool: EnginePool, name: str) -> None:
    if not any(one.is_usable for one in pool.members() if one.name != name):
        raise EngineUnavailable("No other engine of this model is ready: its requests would have nowhere to go.")
