"""ReplicaApp: our ASGI application as Ray Serve calls it.

Serve differs from an HTTP server in three ways, and this takes them back. It cancels the task of a request whose client
has gone: here a request runs in a task of its own and hears `http.disconnect`, as anywhere else, so that it ends by our
own rules. It names as `server` a socket of another process, or one of its own: without it nobody searches this process
for the connection. It adds the request's id to every answer: ours would be a second one. The end is told only through
the lifespan, when requests have finished.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tidegate.contract import headers as names
from tidegate.http.asgi import AsgiApp, Message, Receive, Scope, Send

T = TypeVar("T")

LEAVE_S = 5.0
"""How long a request may take to end after its client has gone; then it is cancelled."""
_GONE: Message = {"type": "http.disconnect"}
_REQUEST_ID = names.IN_REQUEST_ID.encode()


class ReplicaApp:
    """An ASGI application. `on_shutdown` is awaited once, at the end of the lifespan."""

    def __init__(self, app: AsgiApp, on_shutdown: Callable[[], Awaitable[None]]) -> None:
        self._app = app
        self._on_shutdown = on_shutdown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._run(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self._on_shutdown()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": "lifespan.startup.complete"})

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        own = {**scope, "server": None}
        client = _Client(receive)
        task = asyncio.ensure_future(_as_coroutine(self._app(own, client.receive, _without_id(scope, send))))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise
            client.leave()
            await asyncio.wait({task}, timeout=LEAVE_S)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise


def _without_id(scope: Scope, send: Send) -> Send:
    """`send` that leaves out the id of the request where Serve will add the same one."""
    ids = {value for name, value in scope["headers"] if name.lower() == _REQUEST_ID}

    async def send_without_id(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message["headers"] if name != _REQUEST_ID or {value} != ids]
            message = {**message, "headers": kept}
        await send(message)

    return send_without_id


class _Client:
    """What the client says, and that it has gone, whoever says so.

    Serve's proxy forgets a request whose client has gone, and then asking for more of it fails instead of saying so.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._gone = asyncio.Event()

    def leave(self) -> None:
        self._gone.set()

    async def receive(self) -> Message:
        said = asyncio.ensure_future(_as_coroutine(self._receive()))
        gone = asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait({said, gone}, return_when=asyncio.FIRST_COMPLETED)
            if said.done() and not said.cancelled() and said.exception() is None:
                return said.result()
            self.leave()
            return _GONE
        finally:
            said.cancel()
            gone.cancel()


async def _as_coroutine(given: Awaitable[T]) -> T:
    return await given
