"""The admin routes: health, readiness, metrics, what is running, and the acts that change the server.

Nothing here is reachable on the public listener. Every act leaves one audit record, refused ones too.
"""

from collections.abc import Awaitable, Callable

from msgspec import UNSET

from tidegate.contract import headers as names
from tidegate.contract.admin import AddBody, DrainBody, EngineAct, NoFields, RollBody, WaitBody, decode_admin_body
from tidegate.contract.admin_query import read_filter
from tidegate.contract.codec import encode_json
from tidegate.contract.error_table import row_of
from tidegate.contract.health import Readiness
from tidegate.errors import EngineUnavailable, ServeError
from tidegate.http.exchange import Exchange
from tidegate.http.request_body import check_media_type, read_body
from tidegate.http.router import Route
from tidegate.http.service_port import Admin, Operator
from tidegate.http.settings import HttpSettings
from tidegate.http.write_whole import write_whole
from tidegate.observability.audit import AdminAct
from tidegate.serving.reply import WholeReply

OPEN_ADMIN_PATHS = frozenset({b"/healthz", b"/readyz"})
"""Answered without the admin credential."""
METRICS_PATH = b"/metrics"
"""Another one, where the settings say so."""

Act = Callable[[Exchange, bytes], Awaitable[WholeReply]]
Audit = Callable[[AdminAct], None]


def admin_routes(admin: Admin) -> list[Route]:
    """The routes of the admin listener that only look."""

    async def tell_alive(exchange: Exchange) -> None:
        if not admin.is_alive():
            raise EngineUnavailable("The server is not alive.")
        await write_whole(exchange, WholeReply(b'{"status":"alive"}'))

    async def tell_ready(exchange: Exchange) -> None:
        obstacle = await admin.obstacle()
        if obstacle is not None:
            raise obstacle
        degraded = await admin.degraded()
        await write_whole(exchange, WholeReply(encode_json(Readiness(degraded=degraded or UNSET))))

    async def show_metrics(exchange: Exchange) -> None:
        content_type, body = await admin.metrics(exchange.head.headers.get("accept", ""))
        await write_whole(exchange, WholeReply(body, headers=[(names.CONTENT_TYPE, content_type)]))

    async def show_requests(exchange: Exchange) -> None:
        await write_whole(exchange, WholeReply(await admin.live_requests(read_filter(exchange.head.query))))

    async def show_engine(exchange: Exchange) -> None:
        await write_whole(exchange, WholeReply(await admin.engine()))

    return [
        Route("GET", "/healthz", tell_alive),
        Route("GET", "/readyz", tell_ready),
        Route("GET", "/metrics", show_metrics),
        Route("GET", "/admin/v1/requests", show_requests),
        Route("GET", "/admin/v1/engine", show_engine),
    ]


def operator_routes(operator: Operator, settings: HttpSettings, audit: Audit) -> list[Route]:
    """The routes of the admin listener that change the server."""

    async def drain(_exchange: Exchange, body: bytes) -> WholeReply:
        return await operator.drain(decode_admin_body(body, DrainBody).timeout_s)

    async def abort(exchange: Exchange, body: bytes) -> WholeReply:
        decode_admin_body(body, NoFields)
        return await operator.abort(exchange.argument)

    async def flush(_exchange: Exchange, body: bytes) -> WholeReply:
        decode_admin_body(body, NoFields)
        return await operator.flush_cache()

    async def restart(_exchange: Exchange, body: bytes) -> WholeReply:
        return await operator.restart_engine(decode_admin_body(body, WaitBody).wait_s or 0.0)

    async def add(_exchange: Exchange, body: bytes) -> WholeReply:
        return await operator.add_engine(decode_admin_body(body, AddBody))

    async def roll(_exchange: Exchange, body: bytes) -> WholeReply:
        return await operator.roll_engines(decode_admin_body(body, RollBody))

    async def stop_roll(_exchange: Exchange, body: bytes) -> WholeReply:
        decode_admin_body(body, NoFields)
        return await operator.stop_roll()

    async def show_roll(exchange: Exchange) -> None:
        await write_whole(exchange, operator.roll_told())

    acts: list[tuple[str, Act]] = [
        ("/admin/v1/drain", drain),
        ("/admin/v1/requests/{id}/abort", abort),
        ("/admin/v1/cache/flush", flush),
        ("/admin/v1/engine/restart", restart),
        ("/admin/v1/engines", add),
        ("/admin/v1/engines/roll", roll),
        ("/admin/v1/engines/roll/stop", stop_roll),
    ]
    acts += [(f"/admin/v1/engines/{{id}}/{act.value}", _on_engine(operator, act)) for act in EngineAct]
    changing = [Route("POST", pattern, _audited(act, settings, audit)) for pattern, act in acts]
    return [*changing, Route("GET", "/admin/v1/engines/roll", show_roll)]


def _on_engine(operator: Operator, act: EngineAct) -> Act:
    async def handle(exchange: Exchange, body: bytes) -> WholeReply:
        if act in (EngineAct.RESTART, EngineAct.RETIRE):
            wait_s = decode_admin_body(body, WaitBody).wait_s or 0.0
        else:
            decode_admin_body(body, NoFields)
            wait_s = 0.0
        return await operator.act_on_engine(exchange.argument, act, wait_s)

    return handle


def _audited(act: Act, settings: HttpSettings, audit: Audit) -> Callable[[Exchange], Awaitable[None]]:
    async def handle(exchange: Exchange) -> None:
        try:
            check_media_type(exchange.head)
            reply = await act(exchange, await read_body(exchange, settings))
        except Exception as error:
            audit(describe_refusal(exchange, error))
            raise
        audit(_describe(exchange, reply.status, "done"))
        await write_whole(exchange, reply)

    return handle


def describe_refusal(exchange: Exchange, error: BaseException) -> AdminAct:
    """Returns the audit record of an act that was not carried out."""
    row = row_of(error) if isinstance(error, ServeError) else row_of(Exception())
    return _describe(exchange, row.status, row.code)


def _describe(exchange: Exchange, status: int, outcome: str) -> AdminAct:
    peer = exchange.head.peer
    return AdminAct(
        action=exchange.route,
        target=exchange.argument,
        peer=f"{peer[0]}:{peer[1]}" if peer is not None else None,
        credential=exchange.principal.name,
        request_id=exchange.request_id,
        status=status,
        outcome=outcome,
    )
