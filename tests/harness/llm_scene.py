"""The adapter of vLLM in process and a stand-in for its library, on one loop: what its tests drive."""

import asyncio
from dataclasses import replace
from typing import Any

from harness.engine_scene import EngineScene
from harness.llm_stand_in import StandInLibrary
from harness.remote_scene import FACTS
from tidegate.engines.life.restart_policy import RestartSettings
from tidegate.engines.remote.client import RemoteEngine
from tidegate.engines.vllm.engine_arguments import VllmPlan
from tidegate.engines.vllm.llm_carrier import LlmCarrier
from tidegate.engines.vllm.watch import VllmSettings, VllmWatch

QUICK = VllmSettings(look_interval_s=0.02, restart=RestartSettings(first_wait_s=0.01, max_wait_s=0.02))
PLAN = VllmPlan("model", "tokenizer", max_sequences=8)


class LlmScene(EngineScene):
    """Used as an async context manager; ready when entered, unless `waits` is False."""

    def __init__(
        self,
        library: StandInLibrary | None = None,
        *,
        settings: VllmSettings = QUICK,
        plan: VllmPlan = PLAN,
        waits: bool = True,
        **facts: Any,
    ) -> None:
        self.library = library or StandInLibrary()
        self.reports: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self._settings = settings
        self._plan = plan
        self._waits = waits
        self._facts = replace(FACTS, **facts)

    async def __aenter__(self) -> "LlmScene":
        loop = asyncio.get_running_loop()
        self.carrier = LlmCarrier(self.library)
        self.engine = RemoteEngine(self.carrier, self.reports.append, call_soon=loop.call_soon, now=loop.time)
        self.watch = VllmWatch(
            self.engine, self.carrier, self.library, self._plan, self._facts, self._settings, self.notes.append
        )
        self.watch.start()
        if self._waits:
            async with asyncio.timeout(self.patience_s):
                await self.watch.wait_ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.watch.aclose()
        assert self.engine.num_open == 0
        assert self.carrier.num_runs == 0
        assert all(llm.is_shut_down for llm in self.library.started)
        assert all(llm.num_live == 0 for llm in self.library.started)

    async def lose(self) -> None:
        self.library.llm.die()
