"""BrokenServer: a proxy in front of a right server that breaks one behaviour (`mutant.py`)."""

import contextlib
import re
import select
import socket
import threading
from collections.abc import Iterable, Iterator

from harness.mutant import Headers, Heard, Mutant, Said
from tidegate.conformance.wire.http_response import ResponseReader
from tidegate.conformance.wire.sse_reader import SseReader

PATIENCE_S = 60.0
SEND_BUFFER_BYTES = 64 * 1024
"""So that a client that does not read is noticed, as it is on a network."""
MAX_BODY_BYTES = 32 << 20
_LAST_CHUNK = re.compile(rb"(?:\A|\n)0[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n\Z")
_FRAMING = ("content-length", "transfer-encoding", "connection")


class BrokenServer:
    """Used as a context manager; `port` is where it listens. `upstream`: port of the right server. It takes one request
    a connection.
    """

    def __init__(self, upstream: int, mutant: Mutant) -> None:
        self._upstream = upstream
        self.mutant = mutant
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self._is_closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, name="broken server")

    def __enter__(self) -> "BrokenServer":
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closing.set()
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()  # wakes the acceptor
        self._acceptor.join(PATIENCE_S)
        self._listener.close()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def _accept(self) -> None:
        while not self._is_closing.is_set():
            client, _ = self._listener.accept()
            thread = threading.Thread(target=self._serve, args=(client,), name="broken server's connection")
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(PATIENCE_S)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        with client, contextlib.suppress(OSError):
            heard = _read_request(client)
            if heard is None:
                return
            went = self.mutant.hear(heard)
            if isinstance(went, Said):
                client.sendall(_head(went.status, _with_length(went.headers, went.body)) + went.body)
                return
            with socket.create_connection(("127.0.0.1", self._upstream), PATIENCE_S) as server:
                server.sendall(_request_bytes(went))
                _Relay(client, server, heard, self.mutant, self._is_closing).run()


class _Relay:
    """The answer on its way from the right server to the client."""

    def __init__(
        self, client: socket.socket, server: socket.socket, heard: Heard, mutant: Mutant, closing: threading.Event
    ) -> None:
        self._client = client
        self._server = server
        self._heard = heard
        self._mutant = mutant
        self._closing = closing
        self._reader = ResponseReader(heard.method)
        self._sse = SseReader()
        self._num_taken = 0
        self._num_events = 0
        self._has_head = False
        self._is_stream = False
        self._held: list[bytes] = []
        self._client_is_gone = False

    def run(self) -> None:
        while not self._reader.is_whole and self._reader.fault is None:
            data = self._next()
            if data is None:
                return
            if data:
                self._reader.feed(data)
            else:
                self._reader.finish()
            self._pass_on()
            if not data:
                break
        if self._reader.status is None:
            return
        if self._is_stream and self._reader.is_whole:
            self._send([*self._held, *self._mutant.ending(self._heard)])
            self._send_bytes(b"0\r\n\r\n")
        elif self._is_stream:
            self._send(self._held)
        else:
            self._send_whole()

    def _next(self) -> bytes | None:
        """Returns what came from the server; None when the client has gone."""
        while True:
            watched = [self._server] if self._client_is_gone else [self._server, self._client]
            ready, _, _ = select.select(watched, [], [], 0.5)
            if self._closing.is_set():
                return None
            if self._client in ready:
                self._client_is_gone = not _peek(self._client)
                if self._client_is_gone and not self._mutant.goes_on_alone:
                    return None
            if self._server in ready:
                return self._server.recv(65536)

    def _pass_on(self) -> None:
        if self._reader.status is None:
            return
        if not self._has_head:
            self._has_head = True
            kind = {name.lower(): value for name, value in self._reader.headers}.get("content-type", "")
            self._is_stream = kind.startswith("text/event-stream") and self._heard.method != "HEAD"
            if self._is_stream:
                status, headers = self._mutant.head(self._heard, self._reader.status, _own(self._reader.headers))
                self._send_bytes(_head(status, [*headers, ("Transfer-Encoding", "chunked")]))
        if self._is_stream:
            for piece in self._reader.body[self._num_taken :]:
                self._take(piece.data)
            self._num_taken = len(self._reader.body)

    def _take(self, data: bytes) -> None:
        for event in self._sse.feed(data):
            frames = list(self._mutant.frame(self._heard, event.data, self._num_events))
            self._num_events += 1
            if self._mutant.holds_stream:
                self._held += frames
            else:
                self._send(frames)

    def _send(self, frames: Iterable[bytes]) -> None:
        for frame in frames:
            self._send_bytes(b"%x\r\n%s\r\n" % (len(frame), frame))

    def _send_whole(self) -> None:
        assert self._reader.status is not None
        body = b"".join(piece.data for piece in self._reader.body)
        if self._heard.method != "HEAD":
            body = self._mutant.whole(self._heard, self._reader.status, body)
        status, headers = self._mutant.head(self._heard, self._reader.status, _own(self._reader.headers))
        self._send_bytes(_head(status, _with_length(headers, body)) + body)

    def _send_bytes(self, data: bytes) -> None:
        if not self._client_is_gone:
            try:
                self._client.sendall(data)
            except OSError:
                self._client_is_gone = True
                if not self._mutant.goes_on_alone:
                    raise


def _peek(sock: socket.socket) -> bytes:
    try:
        return sock.recv(1, socket.MSG_PEEK)
    except OSError:
        return b""


def _own(headers: Iterable[tuple[str, str]]) -> Headers:
    return [(name, value) for name, value in headers if name.lower() not in _FRAMING]


def _with_length(headers: Headers, body: bytes) -> Headers:
    if any(name.lower() in ("content-length", "transfer-encoding") for name, _ in headers):
        return headers
    return [*headers, ("Content-Length", str(len(body)))]


def _head(status: int, headers: Headers) -> bytes:
    lines = [f"HTTP/1.1 {status} said", *(f"{name}: {value}" for name, value in headers), "Connection: close"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _request_bytes(heard: Heard) -> bytes:
    lines = [f"{heard.method} {heard.target} HTTP/1.1", *(f"{name}: {value}" for name, value in heard.headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + heard.body


def _read_request(client: socket.socket) -> Heard | None:
    """Returns the request; None where the client left before its end."""
    data = b""
    num_reads = 0
    while b"\r\n\r\n" not in data:
        piece = client.recv(65536)
        num_reads += 1
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    method, target, _ = first.split(" ", 2)
    by_name = {name.lower(): value for name, value in headers}
    for piece in _rest(client, body, by_name):
        if not piece:
            return None
        body += piece
        num_reads += 1
    return Heard(method, target, headers, body, num_reads=num_reads)


def _rest(client: socket.socket, begun: bytes, headers: dict[str, str]) -> Iterator[bytes]:
    """Yields the rest of a body; an empty piece where it was cut off. A chunked body is passed on as it stands, one
    whose length is no number, or too much, as far as it came with the head.
    """
    if "chunked" in headers.get("transfer-encoding", "").lower():
        tail = begun
        while _LAST_CHUNK.search(tail) is None:
            piece = client.recv(65536)
            yield piece
            if not piece:
                return
            tail = (tail + piece)[-1024:]
        return
    told = headers.get("content-length", "0")
    is_waited_for = told.isascii() and told.isdigit() and int(told) <= MAX_BODY_BYTES
    missing = int(told) - len(begun) if is_waited_for else 0
    while missing > 0:
        piece = client.recv(min(missing, 65536))
        yield piece
        if not piece:
            return
        missing -= len(piece)
