"""The public routes: read, call the service, write."""

from collections.abc import Awaitable, Callable

from tidegate.errors import EngineUnavailable
from tidegate.http.exchange import Exchange
from tidegate.http.request_body import check_media_type, read_body
from tidegate.http.router import Handler, Route
from tidegate.http.service_port import Service
from tidegate.http.settings import HttpSettings
from tidegate.http.stream_watch import StreamWatch
from tidegate.http.write_stream import write_stream
from tidegate.http.write_whole import write_whole
from tidegate.serving.call import Call
from tidegate.serving.reply import Reply, WholeReply

OPEN_API_PATHS = frozenset({b"/healthz", b"/health"})
"""Answered without a key."""

Answer = Callable[[Call], Awaitable[Reply]]


def api_routes(service: Service, settings: HttpSettings, watch: StreamWatch) -> list[Route]:
    """Every route of the public listener."""

    def calling(answer: Answer) -> Handler:
        async def handle(exchange: Exchange) -> None:
            check_media_type(exchange.head)
            slot = await service.claim_slot(exchange.principal, exchange.route)
            try:
                await _call(exchange, answer, settings, watch)
            finally:
                slot.release()

        return handle

    async def list_models(exchange: Exchange) -> None:
        await write_whole(exchange, service.models(exchange.principal))

    async def show_model(exchange: Exchange) -> None:
        await write_whole(exchange, service.model(exchange.argument, exchange.principal))

    async def show_contract(exchange: Exchange) -> None:
        await write_whole(exchange, service.contract(exchange.principal))

    async def tell_health(exchange: Exchange) -> None:
        if not service.is_ready():
            raise EngineUnavailable("The server is not ready.")
        await write_whole(exchange, WholeReply(b'{"status":"ready"}'))

    return [
        Route("POST", "/v1/chat/completions", calling(service.chat)),
        Route("POST", "/v1/completions", calling(service.completion)),
        Route("POST", "/v1/embeddings", calling(service.embeddings)),
        Route("POST", "/v1/score", calling(service.score)),
        Route("POST", "/v1/rerank", calling(service.rerank)),
        Route("POST", "/v1/classify", calling(service.classify)),
        Route("POST", "/v1/tokenize", calling(service.tokenize)),
        Route("POST", "/v1/detokenize", calling(service.detokenize)),
        Route("GET", "/v1/models", list_models),
        Route("GET", "/v1/models/{id}", show_model),
        Route("GET", "/v1/contract", show_contract),
        Route("GET", "/healthz", tell_alive),
        Route("GET", "/health", tell_health),
    ]


async def tell_alive(exchange: Exchange) -> None:
    """The process is alive: it answers."""
    await write_whole(exchange, WholeReply(b'{"status":"alive"}'))


async def _call(exchange: Exchange, answer: Answer, settings: HttpSettings, watch: StreamWatch) -> None:
    reply = await answer(await _read_call(exchange, settings))  # nothing here holds on to the body while it is answered
    if isinstance(reply, WholeReply):
        exchange.stop_watching()
        await write_whole(exchange, reply)
    elif exchange.is_gone:
        reply.close("client_gone")
    else:
        await write_stream(exchange, reply, watch)


async def _read_call(exchange: Exchange, settings: HttpSettings) -> Call:
    """Reads the body; from here on a client that goes cancels this task."""
    body = await read_body(exchange, settings)
    exchange.watch_disconnect()
    return Call(
        route=exchange.route,
        wire_id=exchange.request_id,
        received_at=exchange.received_at,
        body=body,
        headers=exchange.head.headers,
        principal=exchange.principal,
        record=exchange.record,
        trace=exchange.trace,
    )
