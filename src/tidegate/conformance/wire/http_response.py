"""ResponseReader: bytes of one HTTP/1.1 response in, any fragmentation; status, headers and body out (RFC 9112).

Decides when the response is whole, by its own framing. Strict: what is not HTTP is a fault, kept in words, and ends the
reading. Does not know: sockets, time.
"""

from dataclasses import dataclass

import h11

MAX_HEAD_BYTES = 64 * 1024
MAX_INTERIM = 100


@dataclass(frozen=True, slots=True)
class BodyPiece:
    """Part of a body, and where the bytes that brought it ended, counted from the response's first byte."""

    data: bytes
    end_at: int


class ResponseReader:
    """One response to one request with the given method. Memory: the body, once."""

    def __init__(self, method: str) -> None:
        self.status: int | None = None
        self.reason = ""
        self.headers: tuple[tuple[str, str], ...] = ()
        self.body: list[BodyPiece] = []
        self.is_whole = False
        self.fault: str | None = None
        self.cut: str | None = None
        self._num_interim = 0
        self._num_read = 0
        self._connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._connection.send(h11.Request(method=method or "GET", target="/", headers=[("Host", "server")]))
        self._connection.send(h11.EndOfMessage())

    def feed(self, data: bytes) -> None:
        """Takes the next bytes. Those after the end of the response are a fault."""
        if self.is_whole and data:
            self.fault = self.fault or f"{len(data)} bytes follow the end of the response"
        if self.is_whole or self.fault is not None or not data:
            return
        self._num_read += len(data)
        self._connection.receive_data(data)
        self._take()

    def finish(self) -> None:
        """The connection is closed: a body without a declared length ends here, another is cut off; `cut` says how."""
        if self.is_whole or self.fault is not None:
            return
        self._connection.receive_data(b"")
        self._take()
        self.cut, self.fault = self.fault, None

    def _take(self) -> None:
        try:
            while True:
                event = self._connection.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return
                if isinstance(event, h11.Response):
                    self.status = event.status_code
                    self.reason = event.reason.decode("latin-1")
                    self.headers = tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in event.headers)
                elif isinstance(event, h11.InformationalResponse):
                    self._num_interim += 1
                    if self._num_interim > MAX_INTERIM:
                        self.fault = f"more than {MAX_INTERIM} interim responses"
                        return
                elif isinstance(event, h11.Data):
                    self.body.append(BodyPiece(bytes(event.data), self._num_read))
                elif isinstance(event, h11.EndOfMessage):
                    self.is_whole = True
                    num_more = len(self._connection.trailing_data[0])
                    self.fault = f"{num_more} bytes follow the end of the response" if num_more else None
                    return
                elif isinstance(event, h11.ConnectionClosed):
                    return
        except h11.RemoteProtocolError as error:
            self.fault = str(error)
