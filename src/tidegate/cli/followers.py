"""Followers: the server processes that share the engines of a fleet, as whoever adds and retires engines knows them."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from tidegate.cli.worker_pool import WorkerPool
from tidegate.cli.worker_spec import EngineTie
from tidegate.contract.admin import EngineAct, EngineTold
from tidegate.serving.engine_rows import EngineRow


class Reached(NamedTuple):
    """One engine as the followers together have it: `num_requests` of theirs, and whether all of them can use it."""

    num_requests: int
    is_ready: bool


class Followers(Protocol):
    """What the owner of the engines says to those who share them."""

    async def settle(self, ties: Sequence[EngineTie]) -> dict[str, Reached] | None:
        """Tells them which engines there are now, and what is wished of each.

        Returns how they have each engine; nothing where there are no followers, None while some have not answered.
        """
        ...

    async def act(self, name: str, act: EngineAct) -> list[EngineTold]:
        """Tells them what is done to one engine; returns what each says of it."""
        ...


class NoFollowers(Followers):
    """A server of one process."""

    async def settle(self, ties: Sequence[EngineTie]) -> dict[str, Reached]:  # noqa: ARG002 - nobody is told
        return {}

    async def act(self, name: str, act: EngineAct) -> list[EngineTold]:  # noqa: ARG002 - nobody is told
        return []


class WorkerFollowers(Followers):
    """The workers of a server. `pool` is there once they have been started."""

    def __init__(self) -> None:
        self.pool: WorkerPool | None = None

    async def settle(self, ties: Sequence[EngineTie]) -> dict[str, Reached] | None:
        if self.pool is None:
            return {}
        number = self.pool.num_running
        answers = await self.pool.ask_all("settle", msgspec.json.encode(list(ties)).decode())
        if len(answers) < number:
            return None
        reached: dict[str, Reached] = {}
        for answer in answers:
            for row in msgspec.json.decode(answer, type=list[EngineRow]):
                known = reached.get(row.name, Reached(0, is_ready=True))
                reached[row.name] = Reached(known.num_requests + row.requests, known.is_ready and row.ready)
        return reached

    async def act(self, name: str, act: EngineAct) -> list[EngineTold]:
        if self.pool is None:
            return []
        answers = await self.pool.ask_all("act_on_engine", msgspec.json.encode((name, act.value)).decode())
        return [msgspec.json.decode(answer, type=EngineTold) for answer in answers]
