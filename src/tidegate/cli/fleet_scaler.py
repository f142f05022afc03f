"""FleetScaler: carries out what `engines/pool/scaling.py` decides, for models whose number of engines follows the load.

Looks at the gate's accounts of the model, which are over all server processes, and at the pool. Of the engines that
serve it retires the one that owes the least; of equals the one that joined last.
"""

import asyncio
import contextlib
from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from tidegate.cli.engine_fleet import EngineFleet
from tidegate.cli.engine_specs import ScaledEntry
from tidegate.cli.fleet_members import FleetMembers
from tidegate.cli.model_engines import ModelSite
from tidegate.cli.settings import PoolSettings
from tidegate.engines.pool.member_states import TAKEN_OUT, MemberState
from tidegate.engines.pool.pool import EnginePool
from tidegate.engines.pool.scaling import PoolLoad, ScaleAct, ScaleRule, Scaling
from tidegate.errors import EngineUnavailable, ServeError
from tidegate.lasting_task import start_lasting
from tidegate.lifecycle.admission_statistics import AdmissionStatistics

START_S = 600.0
"""How long an engine may take to be ready; then it has failed, and is tried again later."""
LOOK_INTERVAL_S = 0.5
"""How often the load is looked at."""


class FleetScaler:
    """`start`, in the end `aclose`. `accounts` are the gate's, by a model's first name. `now`: monotonic clock."""

    def __init__(
        self,
        fleet: EngineFleet,
        members: FleetMembers,
        accounts: Callable[[str], AdmissionStatistics],
        logger: FilteringBoundLogger,
        now: Callable[[], float],
    ) -> None:
        self._members = members
        self._accounts = accounts
        self._logger = logger
        self._now = now
        self._scaled: list[tuple[ModelSite, EnginePool, Scaling]] = []
        for site in fleet.sites:
            entry, pool = fleet.spec_of(site).scaled, site.engines.pool
            if entry is not None and pool is not None:
                self._scaled.append((site, pool, Scaling(scale_rule(entry, site.settings.pool))))
        self._task: asyncio.Task[None] | None = None
        self._acts: set[asyncio.Task[None]] = set()
        self._retiring: dict[str, str] = {}
        """By a model's first name the engine that was told to retire last."""

    def start(self) -> None:
        """Begins to look."""
        if self._scaled:
            self._task = start_lasting(self._run(), "number of engines")

    async def aclose(self) -> None:
        """Looks no more. Idempotent."""
        tasks = [*self._acts] if self._task is None else [self._task, *self._acts]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            for site, pool, scaling in self._scaled:
                load = self._load(site, pool)
                act = scaling.decide(load, self._now())
                if act is not None:
                    self._logger.info("number of engines", act=act.value, model=site.loaded.served.name, load=str(load))
                    task = start_lasting(self._carry_out(act, site, pool, scaling), f"{act.value} of an engine")
                    self._acts.add(task)
                    task.add_done_callback(self._acts.discard)

    def _load(self, site: ModelSite, pool: EnginePool) -> PoolLoad:
        accounts, members = self._accounts(site.loaded.served.name), pool.members()
        serving = [one for one in members if one.gets_requests and one.status.is_ready]
        rows = [one.status.model.max_sequences for one in serving if one.status.model is not None]
        return PoolLoad(
            num_engines=sum(one.state not in (MemberState.RETIRING, MemberState.GONE) for one in members),
            num_serving=len(serving),
            num_rows=sum(rows),
            num_queued_tokens=accounts.queued_tokens,
            num_sequences=accounts.num_sequences,
        )

    async def _carry_out(self, act: ScaleAct, site: ModelSite, pool: EnginePool, scaling: Scaling) -> None:
        match act:
            case ScaleAct.ADD:
                try:
                    await self._add(site)
                except ServeError as error:
                    self._logger.error("number of engines", act="add", reason=error.message)
                    scaling.note_failed(self._now())
                    return
            case ScaleAct.RETIRE:
                with contextlib.suppress(ServeError):  # it has just gone, or the others have
                    name = self._retiring[site.loaded.served.name] = choose_retiree(pool)
                    await self._members.retire(name)
                    await self._members.wait_retired(name, None)
            case ScaleAct.RETURN:
                name = self._retiring[site.loaded.served.name]
                if any(one.name == name and one.state is MemberState.RETIRING for one in pool.members()):
                    pool.restore(name)
                    await self._members.settle()
                return
        scaling.note_done(act)

    async def _add(self, site: ModelSite) -> None:
        """Raises EngineUnavailable for one that does not start: also one that nobody has a place for."""
        name = await self._members.add(site)
        told = await self._members.wait_added(name, START_S)
        if told.state == MemberState.STARTING.value:
            await self._members.retire(name)
            raise EngineUnavailable(f"Engine {name} was not ready within {START_S:g} s and was taken out again.")


def choose_retiree(pool: EnginePool) -> str:
    """Returns the engine that is missed the least."""
    members = [one for one in pool.members() if one.state not in TAKEN_OUT]
    if not members:
        raise EngineUnavailable("Every engine has been taken out.")
    return min(reversed(members), key=lambda one: (one.is_usable, one.num_tokens)).name


def scale_rule(entry: ScaledEntry, settings: PoolSettings) -> ScaleRule:
    """Returns the rule of a table. Raises ValueError when the tokens are the wrong way round."""
    return ScaleRule(
        least=entry.least,
        most=entry.most,
        up_tokens=settings.scale_up_tokens,
        down_tokens=settings.scale_down_tokens,
        up_wait_s=settings.scale_up_wait_s,
        down_wait_s=settings.scale_down_wait_s,
    )
