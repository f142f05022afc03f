"""One request and its response, from the head to the last byte: what every handler is given.

Adds the headers that every response carries, sends no body to HEAD, and knows whether the status has gone out. It
does not decide what to answer.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tidegate.contract import headers as names
from tidegate.http.asgi import Receive, Send
from tidegate.http.connection_watch import ConnectionWatch, WatchedRequest
from tidegate.http.disconnect import DisconnectWatch
from tidegate.http.pending_bodies import PendingBodies
from tidegate.http.request_head import RequestHead
from tidegate.lifecycle.principal import ANONYMOUS, Principal
from tidegate.observability.access_log import AccessRecord
from tidegate.observability.logs import log_labels
from tidegate.observability.request_trace import RequestTrace

_CONTRACT = (names.CONTRACT.lower().encode(), names.CONTRACT_VERSION.encode())
_REQUEST_ID = names.REQUEST_ID.lower().encode()
_CLOSE = (b"connection", b"close")


@dataclass(frozen=True, slots=True)
class Site:
    """What all exchanges of one application share."""

    on_status: Callable[["Exchange", int], None]
    pending_bodies: PendingBodies
    connections: ConnectionWatch


class Exchange:
    """Belongs to the task that answers the request."""

    def __init__(
        self,
        head: RequestHead,
        receive: Receive,
        send: Send,
        *,
        request_id: str,
        received_at: float,
        site: "Site",
        trace: RequestTrace,
    ) -> None:
        self.head = head
        self.receive = receive
        self.send = send
        self.request_id = request_id
        self.received_at = received_at
        self.trace = trace
        self.route = ""
        self.argument = ""
        self.principal: Principal = ANONYMOUS
        self.extra_headers: list[tuple[str, str]] = []
        """What the answer says beside the handler's own headers, whatever it is."""
        self.is_body_read = not head.has_body
        self.is_cut_off = head.is_framing_doubtful
        """Whether the rest of the body is not worth waiting for: the connection has to end with the answer."""
        self.is_started = False
        self.status: int | None = None
        self.status_at: float | None = None
        """When the status went out, on the monotonic clock; known of requests that are traced."""
        self.error_code: str | None = None
        self.is_replayed = False
        """Whether the answer is one that was recorded earlier."""
        self.record = AccessRecord()
        self.is_gone = False
        self.num_body_bytes = 0
        """What the body holds of the server's room for bodies."""
        self._site = site
        self._waiting: WatchedRequest | None = None
        self._watch: DisconnectWatch | None = None

    @property
    def log_labels(self) -> dict[str, object]:
        """What a log record about this request names it by; for `extra`."""
        return log_labels(wire_id=self.request_id, trace_id=self.trace.trace_id, span_id=self.trace.span_id)

    async def start(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Sends the status and the headers. Once for each exchange."""
        self.release_body()
        self._end_waiting()
        given = (*headers, *self.extra_headers)
        lines = [(name.lower().encode("ascii"), _encode_value(value)) for name, value in given]
        lines.append((_REQUEST_ID, self.request_id.encode()))
        lines.append(_CONTRACT)
        if self.is_cut_off and _CLOSE not in lines:
            lines.append(_CLOSE)
        self.is_started = True
        self.status = status
        self.is_replayed = any(name == names.IDEMPOTENT_REPLAYED for name, _ in given)
        self._site.on_status(self, status)
        await self.send({"type": "http.response.start", "status": status, "headers": lines})

    def reserve_body(self, num_bytes: int) -> None:
        """Takes room for more of the body, until the answer begins. Raises NoCapacity."""
        self._site.pending_bodies.reserve(self.num_body_bytes, num_bytes)
        self.num_body_bytes += num_bytes

    def release_body(self) -> None:
        """Gives back the room of the body. Idempotent."""
        self._site.pending_bodies.release(self.num_body_bytes)
        self.num_body_bytes = 0

    async def finish(self, body: bytes = b"") -> None:
        """Sends the last bytes of the body."""
        shown = b"" if self.head.method == "HEAD" else body
        await self.send({"type": "http.response.body", "body": shown, "more_body": False})

    def watch_disconnect(self) -> None:
        """From here on, a client that goes away cancels the task that calls this. The body must have been read."""
        task = asyncio.current_task()
        assert task is not None

        def leave() -> None:
            self.is_gone = True
            task.cancel()

        self._watch = DisconnectWatch(self.receive, leave)
        if self.head.line is not None:
            self._waiting = WatchedRequest(self.head.line, leave)
            self._site.connections.add(self._waiting)

    def stop_watching(self) -> None:
        """Ends the watch, if there is one. After this the task is not cancelled any more."""
        self._end_waiting()
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def _end_waiting(self) -> None:
        """From here on a write notices a client that has gone."""
        if self._waiting is not None:
            self._site.connections.discard(self._waiting)
            self._waiting = None


def _encode_value(value: str) -> bytes:
    # Values may quote what a caller sent: nothing in one may end the line.
    if not (value.isascii() and value.isprintable()):
        value = "".join(char if char.isascii() and char.isprintable() else "?" for char in value)
    return value.encode("ascii")
