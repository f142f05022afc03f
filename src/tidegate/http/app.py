"""The ASGI callable: what happens to every request, whatever its route.

A straight line: read the head, check it, authorise, route, let the handler answer. Anything that goes wrong is
answered here, once. What others put into middleware (ids, counts, errors) is at the two ends of this file.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tidegate import system
from tidegate.clock import Clock
from tidegate.contract.admin import MAX_BODY_BYTES
from tidegate.contract.headers import IN_TRACEPARENT, IN_TRACESTATE
from tidegate.errors import InternalError, ServeError
from tidegate.http.asgi import Receive, Scope, Send
from tidegate.http.authorise import Authorise, allow_everyone, check_route, forget_credential
from tidegate.http.browser_guard import refuse_browsers
from tidegate.http.connection_abort import abort_connections
from tidegate.http.connection_watch import ConnectionWatch
from tidegate.http.cors import CorsPolicy
from tidegate.http.exchange import Exchange, Site
from tidegate.http.pending_bodies import PendingBodies
from tidegate.http.request_body import discard_body
from tidegate.http.request_head import REQUEST_ID_ENTROPY_BYTES, RequestHead, check_head, choose_request_id, read_head
from tidegate.http.router import Router
from tidegate.http.routes_admin import (
    METRICS_PATH,
    OPEN_ADMIN_PATHS,
    Audit,
    admin_routes,
    describe_refusal,
    operator_routes,
)
from tidegate.http.routes_api import OPEN_API_PATHS, api_routes
from tidegate.http.service_port import Admin, Operator, Service
from tidegate.http.settings import HttpSettings
from tidegate.http.stream_watch import StreamWatch
from tidegate.http.write_error import write_error
from tidegate.http.write_whole import write_allowed
from tidegate.lifecycle.principal import Principal
from tidegate.observability.access_log import MAX_CLIENT_TEXT, AccessRecord, HttpEnded, Write
from tidegate.observability.observer import NullObserver, Observer
from tidegate.observability.request_trace import UNTRACED, RequestTrace, TracePolicy, begin_trace
from tidegate.observability.traced_facts import TracedReply
from tidegate.serving.call import count_retries

_log = logging.getLogger(__name__)
_LOOKING = frozenset({"GET", "HEAD", "OPTIONS"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class AppPorts:
    """What an application uses of the world.

    `authorise` is asked about every request, whatever its spelling, before routing, except for the open paths; it
    raises InvalidApiKey, RouteNotAllowed and the like.
    """

    observer: Observer = field(default_factory=NullObserver)
    clock: Clock = field(default_factory=system.SystemClock)
    entropy: Callable[[int], bytes] = system.entropy
    authorise: Authorise = allow_everyone
    write_access: Write | None = None
    """Is told of every request at its end."""
    tracing: TracePolicy = UNTRACED


def make_public_app(
    service: Service, *, settings: HttpSettings | None = None, ports: AppPorts | None = None
) -> "HttpApp":
    """The application of the public listener."""
    settings, ports = settings or HttpSettings(), ports or AppPorts()
    watch = StreamWatch(
        ports.clock,
        heartbeat_s=settings.heartbeat_s,
        slow_client_timeout_s=settings.slow_client_timeout_s,
        on_stuck=abort_connections,
    )
    return HttpApp(Router(api_routes(service, settings, watch)), OPEN_API_PATHS, settings=settings, ports=ports)


def make_admin_app(
    admin: Admin,
    operator: Operator,
    *,
    settings: HttpSettings | None = None,
    ports: AppPorts | None = None,
    audit: Audit = lambda _act: None,
    is_local: bool = False,
) -> "HttpApp":
    """The application of the admin listener; no page of another origin may read its answers.

    `is_local`: it is bound to loopback, and answers to no other name.
    """
    settings, ports = settings or HttpSettings(), ports or AppPorts()
    settings = replace(settings, body_bytes=min(settings.body_bytes, MAX_BODY_BYTES), cors=CorsPolicy())
    open_paths = OPEN_ADMIN_PATHS | {METRICS_PATH} if settings.has_open_metrics else OPEN_ADMIN_PATHS

    def authorise(head: RequestHead) -> Principal:
        refuse_browsers(head, is_local=is_local)
        return ports.authorise(head)

    routes = [*admin_routes(admin), *operator_routes(operator, settings, audit)]
    return HttpApp(
        Router(routes),
        open_paths,
        settings=settings,
        ports=replace(ports, authorise=authorise),
        on_intruder=lambda exchange, error: audit(describe_refusal(exchange, error)),
    )


class HttpApp:
    """An ASGI application. It never raises for a request's sake: servers would answer in a shape of their own."""

    def __init__(
        self,
        router: Router,
        open_paths: frozenset[bytes],
        *,
        settings: HttpSettings,
        ports: AppPorts,
        on_intruder: Callable[[Exchange, ServeError], None] | None = None,
    ) -> None:
        self.router = router
        self._open_paths = open_paths
        self._settings = settings
        self._ports = ports
        self._site = Site(self._count_status, PendingBodies(settings.pending_body_bytes), ConnectionWatch(ports.clock))
        self._on_intruder = on_intruder
        """Hears of every request that was not let in and would have changed something."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _accept_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._run(scope, receive, send)

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = read_head(scope)
        exchange = Exchange(
            head,
            receive,
            send,
            request_id=choose_request_id(head, self._ports.entropy(REQUEST_ID_ENTROPY_BYTES)),
            received_at=self._ports.clock.now(),
            site=self._site,
            trace=self._begin_trace(head),
        )
        if self._ports.write_access is not None:
            exchange.record = AccessRecord(self._ports.write_access)
        exchange.extra_headers += self._settings.cors.answer_headers(head.headers)
        exchange.route = self.router.pattern_of(head.path)
        try:
            await self._answer(exchange)
        except asyncio.CancelledError:
            if not exchange.is_gone:
                raise
        finally:
            exchange.stop_watching()
            exchange.release_body()
            self._end_record(exchange)

    async def _answer(self, exchange: Exchange) -> None:
        failure: ServeError | None = None
        try:
            await self._handle(exchange)
        except ServeError as error:
            failure = error.with_traceback(None)  # which would hold this frame, and all that belongs to the request
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            _log.exception("a request broke: %s", exchange.route, extra=exchange.log_labels)
            failure = InternalError("The server failed to answer.")
        if failure is not None:
            if exchange.is_started:
                return  # left unfinished: the server closes the connection, and the client sees that it was cut off
            await write_error(exchange, failure, queue_full_status=self._settings.queue_full_status)
        await discard_body(exchange, self._settings)

    async def _handle(self, exchange: Exchange) -> None:
        head = exchange.head
        check_head(head, self._settings)
        preflight = self._settings.cors.preflight_headers(head.method, head.headers)
        if preflight is not None:
            await exchange.start(204, preflight)
            await exchange.finish()
            return
        if head.path not in self._open_paths:
            self._let_in(exchange)
        forget_credential(head)
        match = self.router.locate(head.method, head.path)
        exchange.argument = match.argument or ""
        if match.handler is None:
            await write_allowed(exchange, match.allow)
        else:
            await match.handler(exchange)

    def _end_record(self, exchange: Exchange) -> None:
        if self._ports.write_access is None:
            return
        head, status = exchange.head, exchange.status
        outcome = "error" if status is None or status >= 400 else "ok"
        facts = HttpEnded(
            wire_id=exchange.request_id,
            route=exchange.route,
            method=_known(head.method),
            status=status,
            outcome="client_gone" if exchange.is_gone else outcome,
            code=exchange.error_code,
            duration_s=self._ports.clock.now() - exchange.received_at,
            key_name=exchange.principal.log_name,
            peer=None if head.peer is None else f"{head.peer[0]}:{head.peer[1]}",
            forwarded_for=_cut(head.headers.get("x-forwarded-for")),
            user_agent=_cut(head.headers.get("user-agent")),
            is_replayed=exchange.is_replayed,
            num_retries=count_retries(head.headers),
            trace_id=exchange.trace.trace_id,
            span_id=exchange.trace.span_id,
            wire=self._wire_facts(exchange),
        )
        exchange.record.end_reply(facts)

    def _wire_facts(self, exchange: Exchange) -> TracedReply | None:
        """Returns what only spans need; None where the request is not recorded, or matched nothing of ours."""
        if not exchange.trace.is_recorded or exchange.head.path in self._open_paths:
            return None
        clock, head, status_at = self._ports.clock, exchange.head, exchange.status_at
        return TracedReply(
            trace=exchange.trace,
            received_at=clock.wall() - (clock.now() - exchange.received_at),
            first_byte_s=None if status_at is None else status_at - exchange.received_at,
            is_tls=head.is_tls,
            http_version=head.http_version,
            port=head.local_port,
        )

    def _begin_trace(self, head: RequestHead) -> RequestTrace:
        given = head.headers
        ports = self._ports
        return begin_trace(given.get(IN_TRACEPARENT), given.get(IN_TRACESTATE), ports.tracing, ports.entropy)

    def _let_in(self, exchange: Exchange) -> None:
        try:
            exchange.principal = self._ports.authorise(exchange.head)
            check_route(exchange.principal, exchange.route)
        except ServeError as error:
            if self._on_intruder is not None and exchange.head.method not in _LOOKING:
                self._on_intruder(exchange, error)
            raise

    def _count_status(self, exchange: Exchange, status: int) -> None:
        if exchange.trace.is_recorded:
            exchange.status_at = self._ports.clock.now()
        if exchange.is_gone:
            return
        self._ports.observer.http_response(exchange.route, _known(exchange.head.method), status)


def _known(method: str) -> str:
    return method if method in _METHODS else "other"


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:MAX_CLIENT_TEXT]


def _is_cancelled() -> bool:
    """Whether somebody cancelled this task, rather than something that it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _accept_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
