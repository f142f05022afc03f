"""What the number of engines does with an engine that never becomes ready."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from tidegate.cli.fleet_scaler import FleetScaler
from tidegate.contract.admin import EngineTold
from tidegate.engines.pool.member_states import MemberState
from tidegate.engines.pool.scaling import PoolLoad, ScaleAct, ScalePhase, ScaleRule, Scaling


class StuckMembers:
    """Engines that nobody has a place for."""

    def __init__(self) -> None:
        self.retired: list[str] = []
        self.waits: list[float | None] = []

    async def add(self, _site: Any) -> str:
        return "engine-2"

    async def wait_added(self, name: str, wait_s: float | None) -> EngineTold:
        self.waits.append(wait_s)
        return EngineTold(name, "starting", 0)

    async def retire(self, name: str) -> None:
        self.retired.append(name)


def test_an_engine_that_finds_no_place_is_taken_out_and_tried_again_after_a_rest() -> None:
    members: Any = StuckMembers()
    fleet: Any = SimpleNamespace(sites=())
    pool: Any = None
    site: Any = None
    scaler = FleetScaler(fleet, members, lambda _: pool, structlog.get_logger(), lambda: 100.0)
    scaling = Scaling(ScaleRule(1, 2, up_tokens=1, down_tokens=1, up_wait_s=0.0))
    load = PoolLoad(1, 1, 8, 1000, 0)
    assert scaling.decide(load, 99.0) is ScaleAct.ADD
    with capture_logs() as logs:
        asyncio.run(scaler._carry_out(ScaleAct.ADD, site, pool, scaling))
    assert (members.retired, scaling.phase) == (["engine-2"], ScalePhase.STEADY)
    assert members.waits[0] is not None
    assert "was not ready within" in logs[0]["reason"]
    assert scaling.decide(load, 100.5) is None, "a rest first"
    assert scaling.decide(load, 102.0) is ScaleAct.ADD


@pytest.mark.parametrize("act", [ScaleAct.ADD, ScaleAct.RETIRE])
def test_a_fault_that_nobody_foresaw_leaves_the_number_free_and_is_told(act: ScaleAct) -> None:
    members: Any = SimpleNamespace()
    fleet: Any = SimpleNamespace(sites=())
    nothing: Any = None
    scaler = FleetScaler(fleet, members, lambda _: nothing, structlog.get_logger(), lambda: 100.0)
    scaling = Scaling(ScaleRule(1, 2, up_tokens=1, down_tokens=1, up_wait_s=0.0, down_wait_s=0.0))
    busy, idle = PoolLoad(1, 1, 8, 1000, 0), PoolLoad(2, 2, 16, 0, 0)
    assert scaling.decide(busy if act is ScaleAct.ADD else idle, 99.0) is act
    with pytest.raises(AttributeError):
        asyncio.run(scaler._try(act, nothing, nothing, scaling))
    assert scaling.phase is ScalePhase.STEADY


@pytest.mark.parametrize("state", [MemberState.RETIRING, MemberState.GONE])
def test_demand_that_returns_keeps_the_engine_that_it_was_retiring_if_that_has_not_gone(state: MemberState) -> None:
    restored: list[str] = []
    others = [SimpleNamespace(name="engine-1", state=MemberState.RETIRING)]  # an operator's
    pool: Any = SimpleNamespace(
        members=lambda: [*others, SimpleNamespace(name="engine-2", state=state)], restore=restored.append
    )
    settled: list[bool] = []

    async def settle() -> None:
        settled.append(True)

    members: Any = SimpleNamespace(settle=settle)
    fleet: Any = SimpleNamespace(sites=())
    site: Any = SimpleNamespace(loaded=SimpleNamespace(served=SimpleNamespace(name="model")))
    scaler = FleetScaler(fleet, members, lambda _: pool, structlog.get_logger(), lambda: 100.0)
    scaler._retiring["model"] = "engine-2"
    asyncio.run(scaler._carry_out(ScaleAct.RETURN, site, pool, Scaling(ScaleRule(1, 2))))
    is_kept = state is MemberState.RETIRING
    assert (restored, settled) == ((["engine-2"], [True]) if is_kept else ([], []))
