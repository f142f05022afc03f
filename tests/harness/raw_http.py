"""An HTTP/1.1 client over a bare socket: it shows every byte, and can close, reset or stop reading at will."""

import json
import socket
import struct
from dataclasses import dataclass, field
from typing import Any

from harness.error_leaks import find_leak

TIMEOUT_S = 30.0


@dataclass(slots=True)
class Answer:
    """What came back. `is_complete`: the body ended as its framing promised."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    is_complete: bool = False
    chunks: list[bytes] = field(default_factory=list)

    def json(self) -> Any:
        return json.loads(self.body)


class RawClient:
    """One connection."""

    def __init__(self, port: int, *, receive_buffer_bytes: int | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer_bytes is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.sock.settimeout(timeout_s)
        self.sock.connect(("127.0.0.1", port))
        self._pending = b""
        self._sent = b""

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> None:
        """Sends one request; JSON unless the headers say otherwise."""
        lines = {"Host": "localhost", **({"Content-Type": "application/json"} if body is not None else {})}
        lines |= headers or {}
        if body is not None:
            lines.setdefault("Content-Length", str(len(body)))
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._sent = head.encode() + b"\r\n" + (body or b"")
        self.sock.sendall(self._sent)

    def post(self, path: str, body: Any, headers: dict[str, str] | None = None) -> None:
        self.send("POST", path, json.dumps(body).encode(), headers)

    def close(self) -> None:
        """Ends the connection politely (FIN)."""
        self.sock.close()

    def reset(self) -> None:
        """Ends the connection rudely (RST)."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def read_head(self) -> Answer:
        """Reads status line and headers."""
        while b"\r\n\r\n" not in self._pending:
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionError(f"closed before the head was complete: {self._pending!r}")
            self._pending += data
        head, _, self._pending = self._pending.partition(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        return Answer(int(status_line.split()[1]), {name.lower(): value.strip() for name, _, value in pairs})

    def read_chunk(self) -> bytes | None:
        """Reads one chunk of a chunked body; None at its regular end. Raises ConnectionError when it is cut off."""
        while b"\r\n" not in self._pending:
            self._fill()
        size_line, _, rest = self._pending.partition(b"\r\n")
        size = int(size_line.split(b";")[0], 16)
        self._pending = rest
        while len(self._pending) < size + 2:
            self._fill()
        chunk, self._pending = self._pending[:size], self._pending[size + 2 :]
        return chunk if size else None

    def read_answer(self, method: str = "POST") -> Answer:
        """Reads one whole answer, however it ends. Fails for an error that tells of the inside."""
        answer = self.read_head()
        if method == "HEAD" or answer.status in (204, 304):
            answer.is_complete = True
        else:
            self.read_body(answer)
        if answer.status >= 400:
            assert find_leak(answer.body, self._sent) is None, answer.body
        return answer

    def read_body(self, answer: Answer) -> None:
        """Reads what is left of an answer whose head, and perhaps some chunks, have been read."""
        try:
            if answer.headers.get("transfer-encoding") == "chunked":
                while (chunk := self.read_chunk()) is not None:
                    answer.chunks.append(chunk)
                    answer.body += chunk
            else:
                length = int(answer.headers["content-length"])
                while len(self._pending) < length:
                    self._fill()
                answer.body, self._pending = self._pending[:length], self._pending[length:]
            answer.is_complete = True
        except ConnectionError:
            answer.body = answer.body or self._pending

    def is_closed(self) -> bool:
        """Waits for the far end to close; False when it sends something instead."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def _fill(self) -> None:
        data = self.sock.recv(65536)
        if not data:
            raise ConnectionError("the connection ended inside a body")
        self._pending += data


def request(port: int, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
    """Sends one request on a connection of its own and returns the answer. `body` is JSON data, or raw bytes."""
    with RawClient(port) as client:
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        client.send(method, path, raw, headers)
        return client.read_answer(method)
