"""The operator's view of a server: live requests, the engine, readiness, metrics; and the end of one request."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass

import msgspec

from tidegate.contract.admin_query import EXACT, RequestFilter
from tidegate.contract.codec import encode_json
from tidegate.contract.health import DegradedEngine
from tidegate.engine.gauges import EngineStatus
from tidegate.errors import DeadlineExceeded, EngineUnavailable, ServeError, ServerDraining
from tidegate.lifecycle.admission_statistics import AdmissionStatistics
from tidegate.serving.driver import RequestDriver
from tidegate.serving.engine_rows import EngineRow
from tidegate.serving.model_router import ModelRouter
from tidegate.serving.service import Service

MetricsSource = Callable[[str], tuple[bytes, str]]


class LiveRequest(msgspec.Struct, frozen=True):
    """One live request. Nothing of what was asked or answered. `key` is the name of the caller's key."""

    id: str
    request_id: str
    route: str
    model: str
    key: str
    work: str
    reply: str
    stream: bool
    choices: int
    prompt_tokens: int
    completion_tokens: int
    age_s: float


class LiveList(msgspec.Struct, frozen=True):
    """`data` are the oldest of the `total` requests that were asked for."""

    object: str
    data: list[LiveRequest]
    total: int


@dataclass(frozen=True, slots=True)
class EngineViews:
    """What is said of the engines: `status` of all together, `rows` of each."""

    status: Callable[[], EngineStatus]
    rows: Callable[[], list[EngineRow]]


class AdminView:
    """Implements the admin port of the HTTP layer. `admission` is None where another process decides who enters."""

    def __init__(
        self,
        service: Service | ModelRouter,
        now: Callable[[], float],
        metrics: MetricsSource,
        admission: Callable[[], AdmissionStatistics] | None,
        engines: EngineViews,
    ) -> None:
        self._service = service
        self._now = now
        self._metrics = metrics
        self._admission = admission
        self._engines = engines

    def list_requests(self, wanted: RequestFilter) -> LiveList:
        """Returns the live requests that are wanted, oldest first."""
        now = self._now()
        live = [_describe(driver, now) for driver in self._service.live.values()]
        return choose([one for one in live if _matches(one, wanted)], wanted.limit)

    def abort(self, request_id: str) -> str | None:
        """Ends a request; returns `aborted`, or `complete` where its output is all there. None for an unknown id.

        Its client is told `deadline_exceeded`: the operator's word is the server's maximum, moved to now; a retry is
        advised against, as it should be for a request that somebody had to end.
        """
        driver = self._service.live.get(request_id)
        if driver is None:
            return None
        driver.expire(DeadlineExceeded("An operator ended this request."), cause="operator")
        return "aborted" if driver.error is not None else "complete"

    def accounts(self) -> dict[str, int]:
        """Returns the counts of this process that add up over several."""
        status = self._engines.status()
        return {
            "stale_outputs": status.num_stale_outputs,
            "poison_refusals": status.num_poison_refusals,
        }

    def engine_rows(self) -> list[EngineRow]:
        """Returns a row for each engine, with the counts of this process."""
        return self._engines.rows()

    def gauges(self) -> dict[str, object]:
        """Returns the engines' gauges as this process knows them, by name."""
        return _members(self._engines.status().gauges)

    def expose(self, accept: str) -> tuple[str, bytes]:
        """Returns content type and body of the metrics, in the format that an `Accept` header prefers."""
        body, content_type = self._metrics(accept)
        return content_type, body

    async def live_requests(self, wanted: RequestFilter) -> bytes:
        return encode_json(self.list_requests(wanted))

    async def engine(self) -> bytes:
        admission = {} if self._admission is None else asdict(self._admission())
        return encode_json(describe_engines(self._engines, admission))

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        return self.expose(accept)

    async def obstacle(self) -> ServeError | None:
        return find_obstacle(self._engines.status(), is_accepting=self._service.is_accepting)

    async def degraded(self) -> list[DegradedEngine]:
        return degraded_engines(self._engines.rows())

    def is_alive(self) -> bool:
        return True


def degraded_engines(rows: Iterable[EngineRow]) -> list[DegradedEngine]:
    """Returns the engines that something is the matter with."""
    return [
        DegradedEngine(engine=row.name, model=row.model, condition=row.condition)
        for row in rows
        if row.condition is not None
    ]


def choose(live: Iterable[LiveRequest], limit: int) -> LiveList:
    """Returns the `limit` oldest requests, and how many there are."""
    ordered = sorted(live, key=lambda one: -one.age_s)
    return LiveList("list", ordered[:limit], len(ordered))


def find_obstacle(status: EngineStatus, *, is_accepting: bool) -> ServeError | None:
    """Returns why no requests are taken, in words for operators; None while they are."""
    if not is_accepting:
        return ServerDraining("draining: running requests finish, then the server ends")
    if not status.is_ready:
        return EngineUnavailable(status.condition or "the engine is not ready", retry_after_s=status.retry_after_s)
    return None


def describe_engines(engines: EngineViews, admission: Mapping[str, object]) -> dict[str, object]:
    """Returns state, accounts and model of the engines for people and scripts: of all together, and a row of each."""
    status, rows = engines.status(), engines.rows()
    revisions = {row.revision for row in rows if row.revision is not None}
    return {
        "ready": status.is_ready,
        "condition": status.condition,
        "epoch": status.epoch,
        "process_id": status.process_id,
        "restarts": status.num_restarts,
        "stalls": status.num_stalls,
        "stale_outputs": status.num_stale_outputs,
        "poison_suspects": status.num_poison_suspects,
        "poison_refusals": status.num_poison_refusals,
        "served_revision": next(iter(revisions)) if len(revisions) == 1 else None,
        "model": _members(status.model) if status.model is not None else None,
        "gauges": _members(status.gauges),
        "admission": dict(admission),
        "engines": [_members(row) for row in rows],
    }


def _members(struct: msgspec.Struct) -> dict[str, object]:
    """Returns a struct as a JSON object; those that cross the process boundary are arrays there."""
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _matches(live: LiveRequest, wanted: RequestFilter) -> bool:
    pairs = ((getattr(wanted, name), getattr(live, name)) for name in EXACT)
    return all(asked is None or asked == has for asked, has in pairs)


def _describe(driver: RequestDriver, now: float) -> LiveRequest:
    call, counts = driver.call, driver.counts
    return LiveRequest(
        id=call.context.request_id,
        request_id=call.context.wire_id,
        route=call.context.route,
        model=call.model,
        key=call.context.principal.name,
        work=driver.machine.work.name.lower(),
        reply=driver.machine.reply.name.lower(),
        stream=call.is_stream,
        choices=call.num_choices * len(call.prompts),
        prompt_tokens=counts.num_prompt,
        completion_tokens=counts.num_completion,
        age_s=round(now - call.context.received_at, 3),
    )
