"""A remote engine's adapter and the stand-in that it speaks to, on one loop: what the tests of adapters drive."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.engine_scene import EngineScene
from harness.remote_stand_in import Speech, StandIn
from tidegate.engines.remote.client import RemoteEngine
from tidegate.engines.remote.connection_pool import ConnectionPool
from tidegate.engines.remote.dialect import RemoteKind
from tidegate.engines.remote.endpoint import parse_endpoint
from tidegate.engines.remote.http_carrier import HttpCarrier
from tidegate.engines.remote.served_facts import ServedFacts
from tidegate.engines.remote.watch import RemoteWatch, WatchSettings

QUICK = WatchSettings(health_interval_s=0.02, answer_timeout_s=5.0, first_wait_s=0.01, max_wait_s=0.02)
FACTS = ServedFacts(
    vocab_size=258,
    eos_token_ids=(257,),
    last_token_id=255,
    probes=(("A bridge, 31 m: über", tuple("A bridge, 31 m: über".encode())),),
    max_sequences=8,
)


class RemoteScene(EngineScene):
    """Used as an async context manager; ready when entered, unless `waits` is False."""

    def __init__(
        self,
        speech: Speech,
        make_kind: Callable[[ServedFacts], RemoteKind],
        *,
        settings: WatchSettings = QUICK,
        api_key: str | None = None,
        waits: bool = True,
        **facts: Any,
    ) -> None:
        self.stand_in = StandIn(speech)
        self.reports: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self._make_kind = make_kind
        self._settings = settings
        self._api_key = api_key
        self._waits = waits
        self._facts = replace(FACTS, **facts)

    async def __aenter__(self) -> "RemoteScene":
        await self.stand_in.start()
        loop = asyncio.get_running_loop()
        self.pool = ConnectionPool(parse_endpoint(self.stand_in.url, self._api_key), loop.time)
        carrier = HttpCarrier(self.pool)
        self.engine = RemoteEngine(carrier, self.reports.append, call_soon=loop.call_soon, now=loop.time)
        self.watch = RemoteWatch(self.engine, self._make_kind(self._facts), carrier, self._settings, self.notes.append)
        self.watch.start()
        if self._waits:
            async with asyncio.timeout(self.patience_s):
                await self.watch.wait_ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.watch.aclose()
        await self.stand_in.aclose()
        assert self.engine.num_open == 0
        assert self.pool.num_open == 0

    @property
    def url_of_stand_in(self) -> str:
        return self.stand_in.url

    async def lose(self) -> None:
        await self.stand_in.die()
