"""CrookedServer: answers as the model's name in a request says, rightly or wrongly, for clients that measure."""

import json
import socket
import threading
from typing import Any

CHUNKS = ({"role": "assistant", "content": ""}, {"content": "Hello "}, {"content": "world"})
USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 16}}


def _event(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def _stream(*, usage: dict[str, Any] | None, texts: tuple[dict[str, str], ...] = CHUNKS) -> list[bytes]:
    parts = [_event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in texts]
    parts.append(_event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
    if usage is not None:
        parts.append(_event({"choices": [], "usage": usage}))
    return [*parts, _event(b"[DONE]")]


def _chunked(parts: list[bytes]) -> bytes:
    body = b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts)
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + body


def _whole(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


END = b"0\r\n\r\n"
RIGHT = _stream(usage=USAGE)
ANSWERS: dict[str, bytes] = {
    "right": _chunked(RIGHT) + END,
    "no usage": _chunked(_stream(usage=None)) + END,
    "until it closes": b"HTTP/1.1 200 OK\r\n\r\n" + b"".join(RIGHT),
    "early hints": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + _chunked(RIGHT) + END,
    "closes quietly": _chunked(RIGHT) + END,
    "json": _chunked(_stream(usage=USAGE, texts=({"content": '{"a": 1}'},))) + END,
    "cut": _chunked(RIGHT[:2]),
    "cut without a length": b"HTTP/1.1 200 OK\r\n\r\n" + b"".join(RIGHT[:2]),
    "garbage": b"hello\r\n\r\n",
    "a page": _whole("200 OK", b"<html>"),
    "not streamed": _whole("200 OK", b'{"choices": [{"message": {"content": "Hello"}}]}'),
    "busy": _whole("503 Service Unavailable", b'{"error": {"message": "too much"}}'),
    "error event": _chunked([*RIGHT[:2], _event({"error": {"message": "died"}})]) + END,
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 60_000,
    "a long refusal": _whole("503 Busy", b'{"error": {"message": "' + b"m" * 70_000 + b'"}}'),
    "nothing": b"",
    "silent": b"",
    "empty": _chunked(_stream(usage=USAGE, texts=())) + END,
}
CLOSES = {"endless head", "until it closes", "closes quietly", "cut", "cut without a length", "nothing", "garbage"}


class CrookedServer:
    """Used as a context manager. `num_connections`: how many were accepted; `bodies`: what was asked, parsed.

    `models`: what `GET /v1/models` lists; `key`: what it wants as a bearer token.
    """

    def __init__(self, *models: str, key: str | None = None) -> None:
        self.models = models
        self.key = key
        self.bodies: list[dict[str, Any]] = []
        self.num_connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, name="crooked server", daemon=True)]

    def __enter__(self) -> "CrookedServer":
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._open:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it is closed already
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.num_connections += 1
            self._open.append(sock)
            thread = threading.Thread(target=self._serve, args=(sock,), name="crooked connection", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            with sock, sock.makefile("rb") as stream:
                while (line := stream.readline()).strip():
                    if not self._answer(sock, stream, line):
                        return
        except OSError:
            return  # the client has gone

    def _answer(self, sock: socket.socket, stream: Any, line: bytes) -> bool:
        """Returns whether the connection stays open."""
        length, key = 0, None
        while (header := stream.readline().strip()) != b"":
            name, _, value = header.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
            key = value.strip().decode() if name.lower() == b"authorization" else key
        body = stream.read(length)
        if self.key is not None and key != f"Bearer {self.key}":
            sock.sendall(_whole("401 Unauthorized", b'{"error": {"message": "no key"}}'))
            return True
        if line.startswith(b"GET"):
            data = [{"id": name, "object": "model"} for name in self.models]
            sock.sendall(_whole("200 OK", json.dumps({"object": "list", "data": data}).encode()))
            return True
        self.bodies.append(json.loads(body))
        model = self.bodies[-1]["model"]
        if model not in ANSWERS:
            sock.sendall(_whole("404 Not Found", b'{"error": {"message": "no such model"}}'))
            return True
        sock.sendall(ANSWERS[model])
        if model == "silent":
            stream.read(1)  # until the client goes
        return model not in CLOSES
