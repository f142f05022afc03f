"""ProxyGuard: what callers of Ray Serve may tell it, and what it may tell them. Runs in Serve's proxies.

Serve obeys two request headers of anybody: one cuts a request off, one keeps an abandoned request running. They go no
further than here. What Serve says itself in place of the application (plain text) is said in the one shape of errors,
and a stream that loses its replica ends with the one error event. What Serve answers under `/-/` is left alone.

RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=tidegate.serve_app.proxy_guard.middlewares, where the cluster is started.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidegate import errors
from tidegate.contract import headers as names
from tidegate.contract.error_table import error_answer
from tidegate.http.asgi import AsgiApp, Message, Receive, Scope, Send
from tidegate.http.request_head import is_request_id
from tidegate.http.sse import data_frame

if TYPE_CHECKING:
    from starlette.middleware import Middleware

IMPORT_PATH = "tidegate.serve_app.proxy_guard.middlewares"
OBEYED = frozenset({b"x-request-timeout-seconds", b"x-request-disconnect-disabled"})
"""Request headers that Serve honours, whoever sends them."""
_SERVES_OWN = "/-/"
_REQUEST_ID = names.IN_REQUEST_ID.encode()
_CONTRACT = names.CONTRACT.lower().encode()
_ERROR_EVENT = b'data: {"error":'
_RETRY_AFTER_S = 1

Pair = tuple[bytes, bytes]


def middlewares() -> "list[Middleware]":
    """What Serve asks for by its import path."""
    from starlette.middleware import Middleware

    return [Middleware(ProxyGuard)]


class ProxyGuard:
    """An ASGI application around Serve's."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(_SERVES_OWN):
            await self._app(scope, receive, send)
            return
        answer = _GuardedAnswer(send)
        try:
            await self._app({**scope, "headers": _kept(scope["headers"])}, receive, answer.send)
        except Exception:
            await answer.end_broken()
            raise
        await answer.end_broken()


def _kept(given: Sequence[Pair]) -> list[Pair]:
    """Request headers without those that Serve would obey, and without an id that is none."""
    ids = [value for name, value in given if name.lower() == _REQUEST_ID]
    has_id = len(ids) == 1 and is_request_id(ids[0].decode("latin-1"))
    gone = OBEYED if has_id else OBEYED | {_REQUEST_ID}
    return [(name, value) for name, value in given if name.lower() not in gone]


class _GuardedAnswer:
    """The answer to one request, as far as it has come."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._replaced: Message | None = None
        """The start of an answer of Serve's own."""
        self._is_stream = self._is_started = self._is_complete = self._has_failed = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self._is_started:
            self._is_started = True
            fields = {name.lower(): value for name, value in message["headers"]}
            if _CONTRACT not in fields:
                self._replaced = message
                return
            self._is_stream = fields.get(b"content-type", b"").startswith(b"text/event-stream")
        elif message["type"] == "http.response.body":
            self._is_complete = not message.get("more_body", False)
            if self._replaced is not None:
                if self._is_complete:
                    await self._tell(_error_of(self._replaced), _request_id(self._replaced))
                return
            self._has_failed = self._has_failed or message.get("body", b"").startswith(_ERROR_EVENT)
        await self._send(message)

    async def end_broken(self) -> None:
        """Says what is left to say where the application has ended without an end of its answer."""
        if self._is_complete:
            return
        if not self._is_started:
            self._is_started = self._is_complete = True
            await self._tell(errors.InternalError("Serve failed to answer."), None)
        elif self._replaced is not None:
            self._is_complete = True
            await self._tell(_error_of(self._replaced), _request_id(self._replaced))
        elif self._is_stream and not self._has_failed:
            lost = errors.EngineLost("The replica that was answering has gone.")
            event = data_frame(error_answer(lost, nothing_sent=False).body)
            await self._send({"type": "http.response.body", "body": event, "more_body": True})

    async def _tell(self, error: errors.ServeError, request_id: bytes | None) -> None:
        answer = error_answer(error)
        pairs = [(name.lower().encode(), value.encode()) for name, value in answer.headers]
        pairs += [(_CONTRACT, names.CONTRACT_VERSION.encode()), (b"content-length", str(len(answer.body)).encode())]
        if request_id is not None:
            pairs.append((_REQUEST_ID, request_id))
        await self._send({"type": "http.response.start", "status": answer.status, "headers": pairs})
        await self._send({"type": "http.response.body", "body": answer.body, "more_body": False})


def _request_id(start: Message) -> bytes | None:
    found: list[bytes] = [value for name, value in start["headers"] if name.lower() == _REQUEST_ID]
    return found[0] if found else None


def _error_of(start: Message) -> errors.ServeError:
    """What an answer of Serve's own means."""
    match start["status"]:
        case 404:
            return errors.RouteNotFound("No route has this path.")
        case 408:
            return errors.DeadlineExceeded("Serve's own time for the request was over.")
        case 429:
            return errors.QueueFull("Too many requests wait for a replica.", retry_after_s=_retry_after_s(start))
        case 503:
            return errors.NoCapacity("No replica takes requests now.", retry_after_s=_retry_after_s(start))
        case _:
            return errors.InternalError("Serve failed to answer.")


def _retry_after_s(start: Message) -> int:
    found = [value for name, value in start["headers"] if name.lower() == b"retry-after"]
    return int(found[0]) if found and found[0].isdigit() else _RETRY_AFTER_S
