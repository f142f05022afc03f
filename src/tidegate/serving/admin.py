"""The operator's view of a server: live requests, the engine, readiness, metrics. Read only."""

from collections.abc import Callable, Mapping
from dataclasses import asdict

import msgspec

from tidegate.contract.codec import encode_json
from tidegate.engine.gauges import EngineStatus
from tidegate.serving.driver import RequestDriver
from tidegate.serving.served_model import ServedModel
from tidegate.serving.service import Service

MetricsSource = Callable[[str], tuple[bytes, str]]


class LiveRequest(msgspec.Struct, frozen=True):
    """One live request. Nothing of what was asked or answered."""

    id: str
    request_id: str
    route: str
    model: str
    work: str
    reply: str
    stream: bool
    choices: int
    prompt_tokens: int
    completion_tokens: int
    age_s: float


class AdminView:
    """Implements the admin port of the HTTP layer."""

    def __init__(self, service: Service, now: Callable[[], float], metrics: MetricsSource) -> None:
        self._service = service
        self._now = now
        self._metrics = metrics

    def list_requests(self) -> bytes:
        """Returns the live requests as JSON, oldest first."""
        now = self._now()
        requests = [_describe(driver, now) for driver in self._service.live.values()]
        return encode_json({"object": "list", "data": requests})

    def admission(self) -> dict[str, object]:
        """Returns the accounts of admission."""
        return asdict(self._service.admission_statistics())

    def expose(self, accept: str) -> tuple[str, bytes]:
        """Returns content type and body of the metrics, in the format that an `Accept` header prefers."""
        body, content_type = self._metrics(accept)
        return content_type, body

    async def live_requests(self) -> bytes:
        return self.list_requests()

    async def engine(self) -> bytes:
        status = self._service.engine.statistics()
        return encode_json(describe_engine(status, self._service.served, self.admission()))

    async def metrics(self, accept: str) -> tuple[str, bytes]:
        return self.expose(accept)

    async def is_ready(self) -> tuple[bool, str]:
        if not self._service.is_accepting:
            return False, "draining"
        if not self._service.engine.statistics().is_ready:
            return False, "engine is not ready"
        return True, "ready"

    def is_alive(self) -> bool:
        return True


def describe_engine(status: EngineStatus, served: ServedModel, admission: Mapping[str, object]) -> dict[str, object]:
    """Returns the engine's state, accounts and model for people and scripts."""
    return {
        "ready": status.is_ready,
        "epoch": status.epoch,
        "process_id": status.process_id,
        "restarts": status.num_restarts,
        "stale_outputs": status.num_stale_outputs,
        "served_revision": served.revision(status.model) if status.model is not None else None,
        "model": _members(status.model) if status.model is not None else None,
        "gauges": _members(status.gauges),
        "admission": dict(admission),
    }


def _members(struct: msgspec.Struct) -> dict[str, object]:
    """Returns a struct as a JSON object; those that cross the process boundary are arrays there."""
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _describe(driver: RequestDriver, now: float) -> LiveRequest:
    call, counts = driver.call, driver.counts
    return LiveRequest(
        id=call.context.request_id,
        request_id=call.context.wire_id,
        route=call.context.route,
        model=call.model,
        work=driver.machine.work.name.lower(),
        reply=driver.machine.reply.name.lower(),
        stream=call.is_stream,
        choices=call.num_choices * len(call.prompts),
        prompt_tokens=counts.num_prompt,
        completion_tokens=counts.num_completion,
        age_s=round(now - call.context.received_at, 3),
    )
