"""A roll of engines that ends by a fault of ours."""

import asyncio
from types import SimpleNamespace
from typing import Any

import structlog

from tidegate.cli.fleet_roll import FleetRoll
from tidegate.engines.pool.member_states import MemberState


class Pool:
    def __init__(self) -> None:
        self.restored: list[str] = []

    def members(self) -> list[Any]:
        return [SimpleNamespace(name=name, state=MemberState.READY, is_usable=True) for name in ("one", "two")]

    def drain(self, name: str) -> None:
        pass

    def restore(self, name: str) -> None:
        self.restored.append(name)


class FailingMembers:
    async def requests_of(self, _site: Any, _name: str) -> int:
        raise KeyError("nobody foresaw this")

    async def settle(self) -> None:
        pass


def test_a_fault_that_nobody_foresaw_ends_a_roll_gives_the_engine_back_and_is_reported() -> None:
    pool, reports = Pool(), []
    site: Any = SimpleNamespace(engines=SimpleNamespace(pool=pool, parts={"one": None, "two": None}))
    fleet: Any = SimpleNamespace(sites=(site,))
    members: Any = FailingMembers()
    acts: Any = object()

    async def go() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
        roll = FleetRoll(fleet, members, lambda _: acts, structlog.get_logger())
        roll.begin([site], 1.0)
        told = await roll.wait(5.0)
        assert (told.state, told.left, told.reason) == (
            "aborted",
            ["one", "two"],
            "an internal error, which is in the log",
        )
        roll.begin([site], 1.0)
        await roll.aclose()

    asyncio.run(go())
    assert pool.restored[:1] == ["one"]
    assert isinstance(reports[0]["exception"], KeyError)
