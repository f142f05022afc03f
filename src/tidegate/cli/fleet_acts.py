"""FleetActs: what an operator can do to the engines of a server, to all of them or to one by its name."""

import asyncio
import json

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_acts import Acts
from tidegate.cli.engine_fleet import EngineFleet
from tidegate.cli.engine_keeper import EngineKeeper, make_acts
from tidegate.cli.fleet_members import FleetMembers
from tidegate.cli.fleet_roll import READY_S, FleetRoll
from tidegate.cli.followers import Followers
from tidegate.cli.model_engines import ModelSite
from tidegate.contract.admin import AddBody, CacheDropped, EngineAct, EngineRestarted, EngineTold, RollBody, RollTold
from tidegate.contract.codec import encode_json
from tidegate.engines.pool.member_states import MemberState
from tidegate.engines.pool.roll_states import RollPhase
from tidegate.errors import ServeError, UnsupportedParameter
from tidegate.lasting_task import start_lasting
from tidegate.serving.reply import WholeReply

RESTART_WAIT_S = 600.0
"""How long the next of several engines waits for the one before it to be ready again."""


class FleetActs:
    """Belongs to the fleet's event loop. `followers` share its engines, and `members` come and go."""

    def __init__(
        self, fleet: EngineFleet, members: FleetMembers, followers: Followers, logger: FilteringBoundLogger
    ) -> None:
        self._fleet = fleet
        self._members = members
        self._followers = followers
        self._roll = FleetRoll(fleet, members, self.acts_of, logger)
        self._made: dict[str, tuple[EngineKeeper, Acts]] = {}
        self._rolling: asyncio.Task[None] | None = None

    async def flush_cache(self) -> WholeReply:
        """Drops what the engines keep for reuse. Raises what the first of them says when none could."""
        names = list(self._fleet.keepers)
        if len(names) == 1:
            return await self._flush(names[0])
        outcomes = await asyncio.gather(*(self._flush(name) for name in names), return_exceptions=True)
        done = [json.loads(one.body) for one in outcomes if isinstance(one, WholeReply)]
        if not done:
            raise next(one for one in outcomes if isinstance(one, BaseException))
        dropped = CacheDropped(sum(one["freed_blocks"] for one in done), sum(one["epoch"] for one in done))
        return WholeReply(encode_json(dropped))

    async def restart_engine(self, wait_s: float) -> WholeReply:
        """Restarts the engine; of several one after the other, each when the one before is ready again."""
        names = list(self._fleet.keepers)
        if len(names) == 1:
            return await self.acts_of(names[0]).restart_engine(wait_s)
        if self._rolling is None or self._rolling.done():
            self._rolling = start_lasting(self._restart_all(), "restart of the engines")
        await asyncio.wait([self._rolling], timeout=wait_s)
        status = "ready" if self._rolling.done() else "restarting"
        epoch = sum(site.engines.engine.statistics().epoch for site in self._fleet.sites)
        return WholeReply(encode_json(EngineRestarted(status, epoch)), status=200 if self._rolling.done() else 202)

    async def act_on_engine(self, name: str, act: EngineAct, wait_s: float) -> WholeReply:
        """See the operator port. Draining, ejecting and retiring need another engine of the same model.

        Who gets requests is each server process's own affair: all of them are told. What they still have is theirs.
        """
        site = self._fleet.site_of(name)
        if act is EngineAct.FLUSH:
            return await self._flush(name)
        if act is EngineAct.RESTART:
            return await self.acts_of(name).restart_engine(wait_s)
        if act is EngineAct.RETIRE:
            await self._members.retire(name)
            return _told(await self._members.wait_retired(name, wait_s), MemberState.GONE)
        if act is not EngineAct.RETURN:
            await self._members.check_others(name)
        own = tell_engine(site, name, act)
        told = await self._followers.act(name, act)
        taken = None if own.taken is None else own.taken + sum(one.taken or 0 for one in told)
        requests = own.requests + sum(one.requests for one in told)
        return WholeReply(encode_json(EngineTold(name, own.state, requests, taken)))

    async def add_engine(self, body: AddBody) -> WholeReply:
        """See the operator port."""
        name = await self._members.add(self._members.site(body.model), url=body.url)
        return _told(await self._members.wait_added(name, body.wait_s or 0.0), MemberState.READY)

    async def roll_engines(self, body: RollBody) -> WholeReply:
        """See the operator port."""
        sites = self._fleet.sites if body.model is None else (self._members.site(body.model),)
        self._roll.begin(sites, body.ready_s or READY_S)
        return _rolled(await self._roll.wait(body.wait_s or 0.0))

    async def stop_roll(self) -> WholeReply:
        """See the operator port."""
        return _rolled(await self._roll.stop())

    def roll_told(self) -> WholeReply:
        """See the operator port."""
        return WholeReply(encode_json(self._roll.told()))

    async def aclose(self) -> None:
        """Ends what is under way; the fleet is to be closed before."""
        await self._roll.aclose()
        if self._rolling is not None:
            self._rolling.cancel()
            await asyncio.gather(self._rolling, return_exceptions=True)
        for _, acts in self._made.values():
            await acts.aclose()

    def acts_of(self, name: str) -> Acts:
        """Returns what can be done to an engine. Raises RouteNotFound."""
        self._fleet.site_of(name)
        keeper, made = self._fleet.keepers[name], self._made.get(name)
        if made is None or made[0] is not keeper:
            made = self._made[name] = (keeper, make_acts(keeper))
        return made[1]

    async def _flush(self, name: str) -> WholeReply:
        reply = await self.acts_of(name).flush_cache()
        pool = self._fleet.site_of(name).engines.pool
        if pool is not None:
            pool.forget_prefixes(name)
        return reply

    async def _restart_all(self) -> None:
        for name in list(self._fleet.keepers):
            try:
                await self.acts_of(name).restart_engine(RESTART_WAIT_S)
            except ServeError:
                continue  # an engine that runs elsewhere, or has left


def _told(one: EngineTold, wanted: MemberState) -> WholeReply:
    """Returns 200 for what is as it was to be, and 202 for what is on its way."""
    return WholeReply(encode_json(one), status=200 if one.state == wanted.value else 202)


def _rolled(told: RollTold) -> WholeReply:
    """Returns 202 for a roll that is under way."""
    is_over = told.state in (RollPhase.DONE.value, RollPhase.ABORTED.value)
    return WholeReply(encode_json(told), status=200 if is_over else 202)


def tell_engine(site: ModelSite, name: str, act: EngineAct) -> EngineTold:
    """Drains, ejects or returns an engine of a pool. Raises UnsupportedParameter where it is alone."""
    pool = site.engines.pool
    if pool is None:
        raise UnsupportedParameter("The engine is the only one of its model: drain the server, or restart the engine.")
    taken = None
    if act is EngineAct.RETURN:
        pool.restore(name)
    elif act is EngineAct.EJECT:
        taken = pool.eject(name)
    else:
        pool.drain(name)
    one = next(member for member in pool.members() if member.name == name)
    return EngineTold(name, one.state.value, one.num_requests, taken)
