"""Finds clients that have left although the HTTP server cannot see it.

A server stops reading a connection while bytes of a next request wait on it (pipelining, or a stray line break behind
a body); so it does not come to the end of the file behind them, and a request that sends nothing yet would run to its
end for nobody. The kernel knows: this asks it, for requests whose answer has not begun, once in a while.

One ticker for all; runs only while there is something to watch. A request younger than a tick costs nothing but an
entry in a set. Only on Linux; elsewhere such a client is noticed by the first write.
"""

import asyncio
import os
import select
from collections.abc import Callable

from tidegate.clock import Clock
from tidegate.http.connection_abort import Line, SocketFile, abort_socket, find_sockets

TICK_S = 1.0
_SEARCH_SHARE = 50
"""The next look waits for at least so many times what the last search took."""
_LEFT = getattr(select, "POLLRDHUP", 0)


class WatchedRequest:
    """One request that waits for its answer."""

    __slots__ = ("line", "on_gone", "socket_file", "was_seen")

    def __init__(self, line: Line, on_gone: Callable[[], object]) -> None:
        self.line = line
        self.on_gone = on_gone
        self.socket_file: SocketFile | None = None
        self.was_seen = False


class ConnectionWatch:
    """Belongs to one event loop."""

    def __init__(self, clock: Clock, *, tick_s: float = TICK_S) -> None:
        self._clock = clock
        self._tick_s = tick_s
        self._requests: set[WatchedRequest] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, request: WatchedRequest) -> None:
        if not _LEFT:
            return
        self._requests.add(request)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._tick_s, self._tick)

    def discard(self, request: WatchedRequest) -> None:
        self._requests.discard(request)
        if not self._requests and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def look(self) -> None:
        """Looks at every request that was there at the last look too; ends those whose client has left."""
        known = {request.socket_file[0]: request for request in self._search() if request.socket_file is not None}
        # Searching has already ended those whose socket was reset before anybody knew it.
        poll = select.poll()
        for descriptor in known:
            poll.register(descriptor, _LEFT)
        for descriptor, event in poll.poll(0):
            request = known[descriptor]
            if event & select.POLLNVAL or not _is_same(request.socket_file):
                request.socket_file = None  # closed: the server knows
                continue
            self._requests.discard(request)
            request.on_gone()
            abort_socket(descriptor)  # or what waits behind the request would be carried out next

    def _search(self) -> list[WatchedRequest]:
        """Returns the requests to look at, with their sockets as far as they are found."""
        old = [request for request in self._requests if request.was_seen]
        for request in self._requests:
            request.was_seen = True
        lacking = {request.line: request for request in old if request.socket_file is None}
        if lacking:
            found, reset_ports = find_sockets(lacking.keys())
            for line, request in lacking.items():
                request.socket_file = found.get(line)
                if request.socket_file is None and line[2] in reset_ports:
                    self._requests.discard(request)
                    request.on_gone()
        return old

    def _tick(self) -> None:
        begun = self._clock.now()
        self.look()
        wait_s = max(self._tick_s, _SEARCH_SHARE * (self._clock.now() - begun))
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._tick) if self._requests else None


def _is_same(socket_file: SocketFile | None) -> bool:
    """Whether the descriptor still stands for the socket that was found."""
    if socket_file is None:
        return False
    descriptor, inode = socket_file
    try:
        return os.fstat(descriptor).st_ino == inode
    except OSError:
        return False
