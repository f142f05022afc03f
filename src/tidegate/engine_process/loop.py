"""The step loop: receive, step, send, in one thread; it blocks only when nothing can run.

Commands that have arrived are applied before every step, so an abort takes effect by the next one. One fault of a
client ends that client's connection; only the backend, or a broken invariant of ours, ends the loop.
"""

import selectors
import socket
import traceback
from dataclasses import dataclass
from typing import Protocol

from tidegate.clock import Clock
from tidegate.core.backend import BackendError
from tidegate.engine.exit_code import EngineExit
from tidegate.engine.framing import FramingError, encode_frame
from tidegate.engine.messages import EngineFault, Farewell, Report, StepOutputs
from tidegate.engine_process.connection import Connection, ConnectionGone
from tidegate.engine_process.log import JsonLog
from tidegate.engine_process.switchboard import Core, Switchboard

MAX_UNSENT_BYTES = 64 * 1024 * 1024
"""What is kept for a server process that reads slowly; above it, its connection is dropped."""
MAX_CONNECTIONS = 256
LONGEST_SLEEP_S = 5.0
"""How long the loop sleeps before it looks for its parent, where no event tells it."""


class Parent(Protocol):
    """What the loop asks about the process that started it."""

    @property
    def is_gone(self) -> bool: ...

    @property
    def stdin_fd(self) -> int | None: ...


class Compiles(Protocol):
    """Grammars that are compiled in the background."""

    @property
    def arrivals(self) -> socket.socket: ...

    def collect(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LoopSockets:
    """They belong to the caller. Servers connect to `listener`; a byte on `stop` ends the loop between two steps.

    When `compiles.arrivals` can be read, the loop collects.
    """

    listener: socket.socket
    stop: socket.socket
    compiles: Compiles | None = None


class StepLoop:
    """Owns the selector and the connections; `board` is the switchboard of `core`."""

    def __init__(self, core: Core, board: Switchboard, sockets: LoopSockets, clock: Clock, log: JsonLog) -> None:
        self._core = core
        self._board = board
        self._listener = sockets.listener
        self._stop = sockets.stop
        self._compiles = sockets.compiles
        self._clock = clock
        self._log = log
        self._selector = selectors.DefaultSelector()
        self._connections: dict[int, Connection] = {}
        self._num_accepted = 0
        self._is_stopping = False
        self._is_settled = False

    def run(self, parent: Parent) -> EngineExit:
        """Runs until told to stop, the parent is gone, or the engine cannot go on."""
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._stop, selectors.EVENT_READ, self._quit)
        if self._compiles is not None:
            self._selector.register(self._compiles.arrivals, selectors.EVENT_READ, self._collect)
        if parent.stdin_fd is not None:
            self._selector.register(parent.stdin_fd, selectors.EVENT_READ, self._quit)
        try:
            while not self._is_stopping and not parent.is_gone:
                self._turn()
            self._say_last(Farewell())
        except BackendError as error:
            self._log.write("error", "the backend failed", error=str(error))
            return self._fault(EngineExit.BACKEND_FAILED, "A forward pass failed.")
        except Exception:
            self._log.write("error", "internal error", traceback=traceback.format_exc())
            return self._fault(EngineExit.INTERNAL, "An internal error in the engine.")
        finally:
            for connection in self._connections.values():
                connection.close()
            self._selector.close()
        return EngineExit.CLEAN

    def _turn(self) -> None:
        now = self._clock.now()
        wake_at = self._core.next_wake_at(now)
        wait_s = LONGEST_SLEEP_S if wake_at is None else min(max(0.0, wake_at - now), LONGEST_SLEEP_S)
        if wait_s > 0.0 and not self._is_settled:
            if wake_at is None:
                self._core.check_integrity()
            self._send_all(self._board.catch_up())
            self._is_settled = True
        for key, mask in self._selector.select(wait_s):
            if isinstance(key.data, Connection):
                self._serve(key.data, mask)
            else:
                key.data()
        now = self._clock.now()
        wake_at = self._core.next_wake_at(now)
        if wake_at is not None and wake_at <= now:
            self._is_settled = False
            deltas = self._core.step(now)
            self._send_all(self._board.route(deltas, self._clock.now() - now))

    def _quit(self) -> None:
        self._is_stopping = True

    def _collect(self) -> None:
        self._is_settled = False
        if self._compiles is not None:
            self._compiles.collect()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        if len(self._connections) >= MAX_CONNECTIONS:
            self._log.write("warning", "too many connections", limit=MAX_CONNECTIONS)
            sock.close()
            return
        self._num_accepted += 1
        self._is_settled = False  # an engine at rest tells the newcomer its gauges too
        connection = Connection(sock, self._num_accepted, MAX_UNSENT_BYTES)
        self._connections[connection.client] = connection
        self._selector.register(sock, selectors.EVENT_READ, connection)
        self._log.write("info", "server connected", client=connection.client)
        self._send(connection, self._board.join(connection.client))

    def _serve(self, connection: Connection, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                connection.flush()
                self._watch(connection)
            if mask & selectors.EVENT_READ:
                self._receive(connection)
        except (ConnectionGone, FramingError) as error:
            self._drop(connection, error)

    def _receive(self, connection: Connection) -> None:
        now = self._clock.now()
        for command in connection.receive():
            self._is_settled = False
            answer = self._board.receive(connection.client, command, now)
            if answer is not None:
                self._send(connection, answer)

    def _send_all(self, parts: list[tuple[int, StepOutputs]]) -> None:
        for client, outputs in parts:
            connection = self._connections.get(client)
            if connection is not None:
                self._send(connection, outputs)

    def _send(self, connection: Connection, report: Report) -> None:
        try:
            connection.send(encode_frame(report))
        except (ConnectionGone, FramingError) as error:
            self._drop(connection, error)
        else:
            self._watch(connection)

    def _watch(self, connection: Connection) -> None:
        """Asks the selector for writability exactly while something is unsent."""
        wants_write = connection.num_unsent_bytes > 0
        if wants_write == connection.is_watched_for_write:
            return
        connection.is_watched_for_write = wants_write
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wants_write else 0)
        self._selector.modify(connection.sock, events, connection)

    def _drop(self, connection: Connection, error: Exception) -> None:
        """Ends a connection and aborts its requests. Idempotent."""
        if self._connections.pop(connection.client, None) is None:
            return
        is_broken = isinstance(error, FramingError)
        self._log.write("warning" if is_broken else "info", "server dropped", client=connection.client, why=str(error))
        self._selector.unregister(connection.sock)
        connection.close()
        self._is_settled = False
        self._board.leave(connection.client, self._clock.now())

    def _fault(self, code: EngineExit, message: str) -> EngineExit:
        self._say_last(EngineFault(message))
        return code

    def _say_last(self, report: Report) -> None:
        frame = encode_frame(report)
        for connection in self._connections.values():
            connection.close(frame)
