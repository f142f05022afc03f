"""The admin routes: health, readiness, metrics, and what is running."""

from tidegate.contract import headers as names
from tidegate.errors import EngineUnavailable
from tidegate.http.exchange import Exchange
from tidegate.http.router import Route
from tidegate.http.service_port import Admin
from tidegate.http.write_whole import write_whole
from tidegate.serving.reply import WholeReply

OPEN_ADMIN_PATHS = frozenset({b"/healthz", b"/readyz"})
"""Answered without the admin credential."""
METRICS_PATH = b"/metrics"
"""Another one, where the settings say so."""


def admin_routes(admin: Admin) -> list[Route]:
    """Every route of the admin listener."""

    async def tell_alive(exchange: Exchange) -> None:
        if not admin.is_alive():
            raise EngineUnavailable("The server is not alive.")
        await write_whole(exchange, WholeReply(b'{"status":"alive"}'))

    async def tell_ready(exchange: Exchange) -> None:
        is_ready, reason = await admin.is_ready()
        if not is_ready:
            raise EngineUnavailable(reason)
        await write_whole(exchange, WholeReply(b'{"status":"ready"}'))

    async def show_metrics(exchange: Exchange) -> None:
        content_type, body = await admin.metrics(exchange.head.headers.get("accept", ""))
        await write_whole(exchange, WholeReply(body, headers=[(names.CONTENT_TYPE, content_type)]))

    async def show_requests(exchange: Exchange) -> None:
        await write_whole(exchange, WholeReply(await admin.live_requests()))

    async def show_engine(exchange: Exchange) -> None:
        await write_whole(exchange, WholeReply(await admin.engine()))

    return [
        Route("GET", "/healthz", tell_alive),
        Route("GET", "/readyz", tell_ready),
        Route("GET", "/metrics", show_metrics),
        Route("GET", "/admin/v1/requests", show_requests),
        Route("GET", "/admin/v1/engine", show_engine),
    ]
