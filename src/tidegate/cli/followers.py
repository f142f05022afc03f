"""Followers: the server processes that share the engines of a fleet, as whoever adds and retires engines knows them."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from tidegate.cli.worker_pool import WorkerPool
from tidegate.cli.worker_spec import EngineTie
from tidegate.contract.admin import EngineAct, EngineTold
from tidegate.serving.engine_rows import EngineRow


class Followers(Protocol):
    """What the owner of the engines says to those who share them."""

    async def settle(self, ties: Sequence[EngineTie]) -> dict[str, int] | None:
        """Tells them which engines there are now, and what is wished of each.

        Returns how many requests each engine has from them; None while some of them has not answered.
        """
        ...

    async def act(self, name: str, act: EngineAct) -> list[EngineTold]:
        """Tells them what is done to one engine; returns what each says of it."""
        ...


class NoFollowers(Followers):
    """A server of one process."""

    async def settle(self, ties: Sequence[EngineTie]) -> dict[str, int]:  # noqa: ARG002 - nobody is told
        return {}

    async def act(self, name: str, act: EngineAct) -> list[EngineTold]:  # noqa: ARG002 - nobody is told
        return []


class WorkerFollowers(Followers):
    """The workers of a server. `pool` is there once they have been started."""

    def __init__(self) -> None:
        self.pool: WorkerPool | None = None

    async def settle(self, ties: Sequence[EngineTie]) -> dict[str, int] | None:
        if self.pool is None:
            return {}
        number = self.pool.num_running
        answers = await self.pool.ask_all("settle", msgspec.json.encode(list(ties)).decode())
        if len(answers) < number:
            return None
        counts: dict[str, int] = {}
        for answer in answers:
            for row in msgspec.json.decode(answer, type=list[EngineRow]):
                counts[row.name] = counts.get(row.name, 0) + row.requests
        return counts

    async def act(self, name: str, act: EngineAct) -> list[EngineTold]:
        if self.pool is None:
            return []
        answers = await self.pool.ask_all("act_on_engine", msgspec.json.encode((name, act.value)).decode())
        return [msgspec.json.decode(answer, type=EngineTold) for answer in answers]
