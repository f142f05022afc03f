"""Drives an ASGI application in memory: no socket, no thread, no time.

The test decides when each part of the request body arrives, when the client disconnects, and when a `send` of the
application may return. Like real servers, `send` after a disconnect returns silently, and a waiting one is woken.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]  # Any: ASGI messages are dicts whose values depend on the key
AsgiApp = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

_SETTLE_TURNS = 50


class AsgiConnection:
    """One request in flight. Everything the application has sent so far can be read at any time."""

    def __init__(self, app: AsgiApp, scope: Message) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes] = []
        self.is_finished = False
        """Whether the application sent the last message of the body."""
        self.num_pending_sends = 0
        self._incoming: deque[Message] = deque()
        self._arrived = asyncio.Event()
        self._is_gone = False
        self._gate = asyncio.Event()
        self._gate.set()
        self.task: asyncio.Task[None] = asyncio.ensure_future(self._run(app, scope))

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def feed(self, part: bytes, *, more: bool = False) -> None:
        """Lets a part of the request body arrive."""
        self._incoming.append({"type": "http.request", "body": part, "more_body": more})
        self._arrived.set()

    def disconnect(self) -> None:
        """The client goes away."""
        self._is_gone = True
        self._arrived.set()
        self._gate.set()

    def hold_sends(self) -> None:
        """The client stops reading: from here on no `send` returns."""
        self._gate.clear()

    async def settle(self) -> None:
        """Lets the application run until it waits for something that this client decides."""
        for _ in range(_SETTLE_TURNS):
            await asyncio.sleep(0)

    async def ended(self) -> None:
        """Waits until the application has returned; raises what it raised."""
        await self.task

    async def _run(self, app: AsgiApp, scope: Message) -> None:
        await app(scope, self._receive, self._send)

    async def _receive(self) -> Message:
        while not self._incoming:
            if self._is_gone:
                return {"type": "http.disconnect"}
            self._arrived.clear()
            await self._arrived.wait()
        return self._incoming.popleft()

    async def _send(self, message: Message) -> None:
        if self._is_gone:
            return
        if message["type"] == "http.response.start":
            assert self.status is None, "the response was started twice"
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            assert self.status is not None, "a body was sent before the status"
            assert not self.is_finished, "a body was sent after its end"
            self.pieces.append(message.get("body", b""))
            self.is_finished = not message.get("more_body", False)
        self.num_pending_sends += 1
        try:
            await self._gate.wait()
        finally:
            self.num_pending_sends -= 1


class AsgiClient:
    """Makes requests of one application."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    def open(
        self,
        method: str,
        target: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes | None = b"",
    ) -> AsgiConnection:
        """Starts a request. `body` None leaves the body to `AsgiConnection.feed`."""
        raw_path, _, query = target.encode("latin-1").partition(b"?")
        lines = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
        if body and not any(name in (b"content-length", b"transfer-encoding") for name, _ in lines):
            lines.append((b"content-length", str(len(body)).encode()))
        scope: Message = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": raw_path.decode("latin-1"),
            "raw_path": raw_path,
            "query_string": query,
            "headers": lines,
            "client": None,
            "server": None,
        }
        connection = AsgiConnection(self._app, scope)
        if body is not None:
            connection.feed(body)
        return connection

    async def request(
        self,
        method: str,
        target: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> AsgiConnection:
        """Makes a request and waits for its end."""
        connection = self.open(method, target, headers=headers, body=body)
        await connection.ended()
        return connection
