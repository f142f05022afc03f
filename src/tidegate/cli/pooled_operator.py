"""PooledView and PooledOperator: what an operator sees of several server processes, and does to them."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict

import msgspec

from tidegate.cli.drain_order import DrainOrder
from tidegate.cli.fleet_acts import FleetActs
from tidegate.cli.operator import FleetOperator, abort_reply, drain_reply
from tidegate.cli.worker_pool import WorkerPool
from tidegate.contract.admin_query import RequestFilter
from tidegate.contract.codec import encode_json
from tidegate.contract.health import DegradedEngine
from tidegate.errors import EngineUnavailable, ServeError
from tidegate.lifecycle.admission_statistics import AdmissionStatistics
from tidegate.observability.exposition import render_metrics
from tidegate.observability.merged_metrics import MergedMetrics
from tidegate.observability.metrics import MetricsObserver
from tidegate.serving.admin import EngineViews, LiveList, choose, degraded_engines, describe_engines, find_obstacle
from tidegate.serving.engine_rows import EngineRow
from tidegate.serving.reply import WholeReply

_COUNTED = (
    *("requests", "sequences", "outstanding_tokens", "submitted", "lost", "moved"),
    *("ejections", "prompt_tokens", "matched_tokens"),
)


class PooledView:
    """Implements the admin port of the HTTP layer. `pool` is there once the server has started."""

    def __init__(
        self,
        engines: EngineViews,
        metrics: MetricsObserver,
        order: DrainOrder,
        admission: Callable[[], AdmissionStatistics],
    ) -> None:
        self.pool: WorkerPool | None = None
        self.adds_gauges = False
        """Whether each worker counts its own requests only, so that the engine's gauges are their sum."""
        self._admission = admission
        self._engines = engines
        self._metrics = metrics
        self._order = order

    async def live_requests(self, wanted: RequestFilter) -> bytes:
        answers = await self._ask_all("requests", msgspec.json.encode(wanted).decode())
        lists = [msgspec.json.decode(answer, type=LiveList) for answer in answers]
        chosen = choose((one for part in lists for one in part.data), wanted.limit)
        return encode_json(msgspec.structs.replace(chosen, total=sum(part.total for part in lists)))

    async def engine(self) -> bytes:
        totals: dict[str, int] = {}
        for answer in await self._ask_all("accounts"):
            for name, value in json.loads(answer).items():
                totals[name] = totals.get(name, 0) + value
        rows = await self._rows()
        admission = asdict(self._admission())
        described = describe_engines(EngineViews(self._engines.status, lambda: rows), admission)
        if self.adds_gauges:
            described["gauges"] = await self._gauges()
        return encode_json({**described, **totals})

    async def _rows(self) -> list[EngineRow]:
        answers = [msgspec.json.decode(one, type=list[EngineRow]) for one in await self._ask_all("engines")]
        return add_rows(self._engines.rows(), answers)

    async def _gauges(self) -> dict[str, float]:
        sums: dict[str, float] = {}
        for answer in await self._ask_all("gauges"):
            for name, value in json.loads(answer).items():
                sums[name] = sums.get(name, 0) + value
        model = self._engines.status().model
        if sums and model is not None:
            sums["blocks_free"] = max(0, model.num_blocks - sums["blocks_used"])
        return sums

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        texts = [answer.decode() for answer in await self._ask_all("metrics")]
        body, content_type = render_metrics(
            MergedMetrics(self._metrics.registry, texts, adds_engine=self.adds_gauges).registry, accept
        )
        return content_type, body

    async def obstacle(self) -> ServeError | None:
        found = find_obstacle(self._engines.status(), is_accepting=not self._order.is_given)
        if found is None and (self.pool is None or not await self.pool.count_ready()):
            return EngineUnavailable("no server process is ready")
        return found

    async def degraded(self) -> list[DegradedEngine]:
        return degraded_engines(await self._rows())

    def is_alive(self) -> bool:
        return True

    async def _ask_all(self, word: str, argument: str = "") -> list[bytes]:
        return [] if self.pool is None else await self.pool.ask_all(word, argument)


class PooledOperator(FleetOperator):
    """Implements the operator port of the HTTP layer. Ids are unique over all workers: one of them knows it."""

    def __init__(self, view: PooledView, engines: FleetActs, order: DrainOrder) -> None:
        super().__init__(engines)
        self._view = view
        self._order = order

    async def drain(self, timeout_s: float | None) -> WholeReply:
        was_draining = self._order.is_given
        self._order.give(timeout_s)
        if self._view.pool is not None:
            await self._view.pool.begin_drain(timeout_s)
        return drain_reply(self._order.timeout_s, was_draining=was_draining)

    async def abort(self, request_id: str) -> WholeReply:
        answers = [] if self._view.pool is None else await self._view.pool.ask_all("abort", request_id)
        return abort_reply(request_id, answers[0].decode() if answers else None)


def add_rows(own: list[EngineRow], others: Iterable[list[EngineRow]]) -> list[EngineRow]:
    """Returns the rows with what other processes count for themselves added up. An engine is ready when it is so for
    all of them; the rest is as `own` has it.
    """
    unreached: set[str] = set()
    sums = {row.name: dict.fromkeys(_COUNTED, 0) for row in own}
    for rows in others:
        for row in rows:
            if row.name not in sums:
                continue  # it has just left
            if not row.ready:
                unreached.add(row.name)
            for column in _COUNTED:
                sums[row.name][column] += getattr(row, column)
    return [_joined(row, sums[row.name], is_reached=row.name not in unreached) for row in own]


def _joined(own: EngineRow, sums: dict[str, int], *, is_reached: bool) -> EngineRow:
    condition = own.condition or (None if is_reached else "not every server process has reached it")
    return msgspec.structs.replace(own, **sums, ready=own.ready and is_reached, condition=condition)
