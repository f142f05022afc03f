"""ServerOperator: an operator's acts on a server of one process."""

from tidegate.cli.fleet_acts import FleetActs
from tidegate.cli.public_service import PublicService
from tidegate.contract.admin import AddBody, DrainBegun, EngineAct, RequestAborted, RollBody
from tidegate.contract.codec import encode_json
from tidegate.errors import RouteNotFound
from tidegate.serving.reply import WholeReply


class FleetOperator:
    """The part of the operator port that is about engines: one process has them all, however many serve."""

    def __init__(self, engines: FleetActs) -> None:
        self._engines = engines

    async def flush_cache(self) -> WholeReply:
        return await self._engines.flush_cache()

    async def restart_engine(self, wait_s: float) -> WholeReply:
        return await self._engines.restart_engine(wait_s)

    async def act_on_engine(self, name: str, act: EngineAct, wait_s: float) -> WholeReply:
        return await self._engines.act_on_engine(name, act, wait_s)

    async def add_engine(self, body: AddBody) -> WholeReply:
        return await self._engines.add_engine(body)

    async def roll_engines(self, body: RollBody) -> WholeReply:
        return await self._engines.roll_engines(body)

    async def stop_roll(self) -> WholeReply:
        return await self._engines.stop_roll()

    def roll_told(self) -> WholeReply:
        return self._engines.roll_told()


class ServerOperator(FleetOperator):
    """Implements the operator port of the HTTP layer."""

    def __init__(self, server: PublicService, engines: FleetActs) -> None:
        super().__init__(engines)
        self._server = server

    async def drain(self, timeout_s: float | None) -> WholeReply:
        was_draining = self._server.order.is_given
        self._server.begin_drain(timeout_s)
        return drain_reply(self._server.order.timeout_s, was_draining=was_draining)

    async def abort(self, request_id: str) -> WholeReply:
        return abort_reply(request_id, self._server.parts.admin.abort(request_id))


def drain_reply(timeout_s: float, *, was_draining: bool) -> WholeReply:
    """Returns 202: the end has begun, and comes after this answer."""
    return WholeReply(encode_json(DrainBegun("draining", timeout_s, was_draining)), status=202)


def abort_reply(request_id: str, status: str | None) -> WholeReply:
    """Returns what became of the request. Raises RouteNotFound for one that is not live."""
    if status is None:
        raise RouteNotFound("No live request has this id.")
    return WholeReply(encode_json(RequestAborted(request_id, status)))
