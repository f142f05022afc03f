"""ConnectionPool: connections to one engine, bounded, used again while they are fresh.

A connection that has idled is thrown away long before servers close theirs (five seconds, with most): a request on one
that dies at that moment could not be told from a request that ran.
"""

import asyncio
import ssl
from collections.abc import Callable

from tidegate.engines.remote.endpoint import Endpoint
from tidegate.engines.remote.http_connection import HttpConnection

MAX_CONNECTIONS = 8192
MAX_IDLE = 256
MAX_IDLE_S = 2.0
CONNECT_TIMEOUT_S = 5.0


class TooManyConnections(OSError):
    """The bound on connections to one engine is reached."""


class ConnectionPool:
    """Belongs to one event loop. `now` is a monotonic clock."""

    def __init__(self, endpoint: Endpoint, now: Callable[[], float]) -> None:
        self.endpoint = endpoint
        self._now = now
        self._tls = ssl.create_default_context() if endpoint.is_tls else None
        self._idle: list[tuple[HttpConnection, float]] = []
        self._open: set[HttpConnection] = set()
        self._is_closed = False

    @property
    def num_open(self) -> int:
        return len(self._open)

    @property
    def num_idle(self) -> int:
        return len(self._idle)

    def try_take(self) -> HttpConnection | None:
        """Returns a fresh idle connection, or None."""
        while self._idle:
            connection, since = self._idle.pop()
            if connection.is_usable and self._now() - since <= MAX_IDLE_S:
                return connection
            connection.cut()
        return None

    async def dial(self) -> HttpConnection:
        """Returns a new connection. Raises OSError, a timeout included."""
        if self._is_closed or len(self._open) >= MAX_CONNECTIONS:
            raise TooManyConnections(f"{len(self._open)} connections to the engine are open")
        made = HttpConnection(self._take_back, self._open.discard)
        self._open.add(made)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await asyncio.get_running_loop().create_connection(
                    lambda: made, self.endpoint.host, self.endpoint.port, ssl=self._tls
                )
        except BaseException:
            made.cut()
            self._open.discard(made)
            raise
        return made

    def cut_all(self) -> None:
        """Closes every connection at once."""
        self._idle.clear()
        for connection in list(self._open):
            connection.cut()

    def close(self) -> None:
        """As `cut_all`; no new ones are made."""
        self._is_closed = True
        self.cut_all()

    def _take_back(self, connection: HttpConnection) -> None:
        self._idle.append((connection, self._now()))
        if len(self._idle) > MAX_IDLE:
            oldest, _ = self._idle.pop(0)
            oldest.cut()
