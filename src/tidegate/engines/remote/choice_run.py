"""ChoiceRun: one choice of a request, as one exchange with the engine.

Reads the answer event by event and hands on pieces; while it is held it reads nothing more and keeps what it had. Its
owner hears one ending, unless it cut the run itself.
"""

import asyncio
from collections import deque

from tidegate.engines.remote.carrier import COMPLETE, Ending, Outcome, RunOwner
from tidegate.engines.remote.connection_pool import ConnectionPool
from tidegate.engines.remote.dialect import Order, OutputReader, Piece
from tidegate.engines.remote.event_lines import EventLines, UnreadableAnswer
from tidegate.engines.remote.http_connection import HttpConnection
from tidegate.engines.remote.remote_error import lost, not_sent, refusal_of
from tidegate.errors import ServeError

MAX_BODY_BYTES = 64 * 1024 * 1024
"""An answer that is no stream: the scores of a long prompt."""
MAX_ERROR_BYTES = 16 * 1024

_DONE = b"[DONE]"


class ChoiceRun:
    """`start` once; `cut` ends it in silence."""

    def __init__(self, owner: RunOwner, pool: ConnectionPool, order: Order, reader: OutputReader, choice: int) -> None:
        self.choice = choice
        self.status: int | None = None
        self._owner = owner
        self._pool = pool
        self._order = order
        self._reader = reader
        self._lines = EventLines()
        self._body = bytearray()
        self._connection: HttpConnection | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._waiting: deque[bytes] = deque()
        self._waiting_end: tuple[Ending, str] | None = None
        self._last: Piece | None = None
        self._is_held = False
        self._has_ended = False

    def start(self) -> None:
        """Sends the order, on a new connection where no fresh one is idle."""
        connection = self._pool.try_take()
        if connection is not None:
            self._begin(connection)
        else:
            self._dialling = asyncio.create_task(self._dial(), name="connection to the engine")

    def hold(self, *, held: bool) -> None:
        """Stops or resumes reading."""
        if held == self._is_held or self._has_ended:
            return
        self._is_held = held
        if self._connection is not None:
            self._connection.pause(paused=held)
        while self._waiting and not self._is_held and not self._has_ended:
            self._take_event(self._waiting.popleft())
        if self._waiting_end is not None and not self._is_held:
            self._end(*self._waiting_end)

    def cut(self) -> None:
        """Ends the exchange; the owner hears nothing more."""
        self._has_ended = True
        self._waiting.clear()
        if self._dialling is not None:
            self._dialling.cancel()
        if self._connection is not None:
            self._connection.cut()

    async def _dial(self) -> None:
        try:
            connection = await self._pool.dial()
        except OSError as error:
            self._end(Ending.NOT_SENT, f"no connection: {error.strerror or error}")
            return
        self._dialling = None
        if self._has_ended:
            connection.cut()
        else:
            self._begin(connection)

    def _begin(self, connection: HttpConnection) -> None:
        self._connection = connection
        order = self._order
        head = self._pool.endpoint.head("POST", order.path, len(order.body), order.headers)
        connection.send(head + order.body, self)
        self._order = Order(order.path, b"", order.is_stream)
        if self._is_held:
            connection.pause(paused=True)

    # ---- from the connection ----

    def take_head(self, status: int) -> None:
        self.status = status

    def take_body(self, data: bytes) -> None:
        if self._has_ended:
            return
        if self.status != 200:
            self._body += data[: MAX_ERROR_BYTES - len(self._body)]
        elif not self._order.is_stream:
            self._body += data
            if len(self._body) > MAX_BODY_BYTES:
                self._give_up(f"an answer of more than {MAX_BODY_BYTES} bytes")
        else:
            self._take_stream(data)

    def end(self) -> None:
        self._connection = None
        if self.status != 200:
            text = " ".join(bytes(self._body[:300]).decode("utf-8", "replace").split())
            self._end_in_turn(Ending.REFUSED, f"status {self.status}: {text}")
            return
        if not self._order.is_stream:
            self._take_in_turn(bytes(self._body))
        self._end_in_turn(Ending.LOST, "the answer ended without an end of the output")

    def lose(self, reason: str) -> None:
        self._connection = None
        self._end_in_turn(Ending.LOST, reason)

    # ---- in the order of the stream ----

    def _take_stream(self, data: bytes) -> None:
        try:
            events = self._lines.feed(data)
        except UnreadableAnswer as error:
            self._give_up(str(error))
            return
        for event in events:
            self._take_in_turn(event)

    def _take_in_turn(self, event: bytes) -> None:
        if self._is_held or self._waiting:
            self._waiting.append(event)
        elif not self._has_ended:
            self._take_event(event)

    def _end_in_turn(self, ending: Ending, reason: str) -> None:
        if self._is_held or self._waiting:
            self._waiting_end = (ending, reason)
        else:
            self._end(ending, reason)

    def _take_event(self, event: bytes) -> None:
        if event == _DONE:
            self._end(Ending.LOST, "the stream was declared done without an end of the output")
            return
        try:
            piece = self._reader.feed(event)
        except UnreadableAnswer as error:
            self._give_up(f"{error}: {event[:200]!r}")
            return
        if piece is None:
            return
        if self._last is not None:
            self._complete(piece)
        elif piece.finish is None:
            self._owner.take_piece(self, piece)
        else:
            self._last = piece
            if piece.is_last or not self._order.is_stream:
                self._end(Ending.COMPLETE, "")

    def _complete(self, behind: Piece) -> None:
        """What comes behind the last token is only counts."""
        if behind.token_ids or behind.finish is not None:
            self._give_up("output behind the end of the output")
        elif self._last is not None and behind.num_cached_tokens is not None:
            self._last.num_cached_tokens = behind.num_cached_tokens

    def _give_up(self, reason: str) -> None:
        """The answer cannot be believed any more."""
        self._last = None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.cut()
        self._end(Ending.LOST, reason)

    def _end(self, ending: Ending, reason: str) -> None:
        """An output that has its end is complete, however the exchange went on."""
        if self._has_ended:
            return
        self._has_ended = True
        self._waiting.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.release()
        last, self._last = self._last, None
        if last is not None:
            self._owner.take_piece(self, last)
            ending = Ending.COMPLETE
        self._owner.end_run(self, COMPLETE if ending is Ending.COMPLETE else self._outcome(ending, reason))

    def _outcome(self, ending: Ending, reason: str) -> Outcome:
        error: ServeError
        if ending is Ending.NOT_SENT:
            error = not_sent()
        elif ending is Ending.REFUSED:
            error = refusal_of(self.status)
        else:
            reason, error = f"after status {self.status}: {reason}", lost()
        return Outcome(ending, reason, error)
