"""SharedGate: the one gate of a server with several processes, in the process that keeps the others alive."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from tidegate.cli.model_engines import ModelSite, poison_of
from tidegate.cli.model_service import build_gates
from tidegate.engines.local.client import LocalEngine
from tidegate.lasting_task import end_task, start_lasting
from tidegate.lifecycle.admission_statistics import AdmissionStatistics
from tidegate.lifecycle.drain import Drain
from tidegate.lifecycle.quota_port import QuotaStatistics
from tidegate.serving.gate_server import GateServer
from tidegate.serving.shared_quota_gate import SharedQuotaGate

LISTEN_INTERVAL_S = 0.1
"""Our engine tells its gauges to the processes whose requests it runs; this one has none, and asks."""


class SharedGate:
    """`start`, in the end `aclose`. Workers drain by themselves: this gate never does."""

    def __init__(self, sites: tuple[ModelSite, ...], logger: FilteringBoundLogger) -> None:
        self._sites = sites
        self._gate = build_gates(sites, Drain())
        self._server = GateServer(
            self._gate, lambda reason: logger.error("gate connection", reason=reason), poison_of(sites)
        )
        self._task: asyncio.Task[None] | None = None

    def statistics(self) -> AdmissionStatistics:
        """Returns the accounts over all processes."""
        return self._gate.statistics()

    def statistics_of(self, model: str) -> AdmissionStatistics:
        """Returns the accounts of one model, over all processes."""
        return self._gate.statistics_of(model)

    @property
    def quotas(self) -> Callable[[], QuotaStatistics] | None:
        """Gives the accounts of the store of quotas; None where there is none."""
        return self._gate.quota_statistics if isinstance(self._gate, SharedQuotaGate) else None

    async def start(self, path: Path) -> None:
        """Listens at `path`. Raises OSError."""
        if isinstance(self._gate, SharedQuotaGate):
            self._gate.start()
        await self._server.start(path)
        self._task = start_lasting(self._listen(), "gate gauges")

    async def aclose(self) -> None:
        """Hangs up. Idempotent."""
        await end_task(self._task)
        await self._server.aclose()
        if isinstance(self._gate, SharedQuotaGate):
            await self._gate.aclose()
        self._gate.close()

    async def _listen(self) -> None:
        num_asked = 0
        while True:
            await asyncio.sleep(LISTEN_INTERVAL_S)
            if self._server.num_held:
                num_asked += 1
                for engine in [engine for site in self._sites for engine in site.engines.parts.values()]:
                    if isinstance(engine, LocalEngine):
                        engine.ping(num_asked)
