"""An operator's restart of an engine on Ray that Ray does not carry out."""

import asyncio
from typing import Any, cast

import pytest

from tidegate.cli.ray_keeper import RayKeeper
from tidegate.engines.local.client import LocalEngine
from tidegate.engines.ray.actor_door import ActorDoor
from tidegate.errors import EngineUnavailable


class ActorDiedError(Exception):
    """Named as Ray's own is."""


class ShutDoor:
    async def restart_engine(self, drain_s: float | None) -> bool:
        raise ActorDiedError("node 10.0.0.7 is gone")


@pytest.mark.parametrize("patience_s", [None, 5.0], ids=["at once", "drained"])
def test_the_operator_is_told_why_and_nothing_of_what_ray_says(patience_s: float | None) -> None:
    reports: list[dict[str, Any]] = []
    engine = LocalEngine(reports.append)
    keeper = RayKeeper("actor", engine, cast("ActorDoor", ShutDoor()), cast("Any", None), 10.0)
    observers = list(engine.on_lost)
    with pytest.raises(EngineUnavailable, match=r"did not do it: its actor died\.") as raised:
        asyncio.run(keeper.restart() if patience_s is None else keeper.restart_drained(patience_s))
    assert "10.0.0.7" not in raised.value.message
    assert engine.on_lost == observers
