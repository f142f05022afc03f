"""PublicService: the service for callers, around engines that somebody else keeps alive, without a listener."""

import asyncio
import contextlib
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from tidegate.cli.drain_order import DrainOrder
from tidegate.cli.loop_lag import LoopLagProbe
from tidegate.cli.model_engines import ModelSite
from tidegate.cli.settings import Settings
from tidegate.cli.wiring import ServerParts, build_parts
from tidegate.errors import ServerDraining
from tidegate.lifecycle.drain import DrainEvent
from tidegate.serving.remote_gate import RemoteGate
from tidegate.serving.shared_quota_gate import SharedQuotaGate

LAST_WORDS_S = 2.0
"""How long streams have to take their error event after the drain."""


class PublicService:
    """`open`, in the end `drain` and `close`. Belongs to one event loop."""

    def __init__(
        self,
        settings: Settings,
        sites: tuple[ModelSite, ...],
        logger: FilteringBoundLogger,
        order: DrainOrder | None = None,
        gate_socket: Path | None = None,
    ) -> None:
        """`gate_socket` is where another process decides who enters; None: this one does."""
        self.order = order or DrainOrder(settings.server)
        self.parts: ServerParts = build_parts(settings, sites, logger, gate_socket)
        self._flush_s = settings.telemetry.flush_s
        self._lag = LoopLagProbe(self.parts.metrics.loop_lag)

    def open(self) -> None:
        """Begins what runs beside requests; they are refused until the engine is ready."""
        self._lag.start()
        self.parts.metrics.num_tasks = lambda: len(asyncio.all_tasks())
        if isinstance(self.parts.gate, RemoteGate | SharedQuotaGate):
            self.parts.gate.start()
        if self.parts.ledger is not None:
            self.parts.ledger.start()
        if self.parts.telemetry.pump is not None:
            self.parts.telemetry.pump.start()

    @property
    def is_ready(self) -> bool:
        """Whether a generating request would be taken now."""
        gate = self.parts.gate
        return self.parts.service.is_ready() and (not isinstance(gate, RemoteGate) or gate.is_connected)

    async def drain(self) -> None:
        """Refuses new requests, lets the running ones finish, and ends what is left with an error event.

        The listener answers all the while, and at least as long as `drain_delay_s` says.
        """
        parts = self.parts
        self.begin_drain()
        await self.order.wait_requests(parts.service.wait_empty)
        parts.drain.apply(DrainEvent.END)
        if parts.service.live:
            parts.service.expire_all(ServerDraining("The server is shutting down."))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_S):
                    await parts.service.wait_empty()
        await self.order.wait_delay()

    def begin_drain(self, timeout_s: float | None = None) -> None:
        """From here on new requests are refused; whoever runs this server hears of the order and calls `drain`."""
        self.parts.drain.apply(DrainEvent.BEGIN)
        self.order.give(timeout_s)

    async def close(self) -> None:
        """Lets go of everything. No request may come any more. Idempotent."""
        self._lag.stop()
        if self.parts.telemetry.pump is not None:
            await asyncio.to_thread(self.parts.telemetry.pump.close, self._flush_s)
        if self.parts.recorder is not None:
            await self.parts.recorder.aclose()
        gate = self.parts.gate
        if isinstance(gate, RemoteGate | SharedQuotaGate):
            await gate.aclose()
        else:
            gate.close()
        for service in self.parts.service.services:
            if service.grammars is not None:
                await service.grammars.aclose()
        self.parts.service.close()
        self.parts.access.close()
