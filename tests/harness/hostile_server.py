"""A server that answers every connection with what it is told to, HTTP or not."""

import contextlib
import socket
import threading
from collections.abc import Callable

Plays = Callable[[socket.socket, bytes], None]
"""Gets a connection and the head of the request, and sends what it likes. The connection is closed afterwards."""


def says(*parts: bytes) -> Plays:
    """Sends these bytes, part by part, and closes."""

    def play(client: socket.socket, head: bytes) -> None:
        for part in parts:
            client.sendall(part)

    return play


def goes_on_forever(start: bytes, part: bytes) -> Plays:
    """Sends `start`, then `part` again and again, until the client goes away."""

    def play(client: socket.socket, head: bytes) -> None:
        client.sendall(start)
        while True:
            client.sendall(part * 512)

    return play


def resets(start: bytes) -> Plays:
    """Sends `start` and resets the connection."""

    def play(client: socket.socket, head: bytes) -> None:
        client.sendall(start)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")

    return play


class HostileServer:
    """Used as a context manager. `url` is its address. `play` may be set anew; `close` makes it go away."""

    def __init__(self, play: Plays) -> None:
        self.play = play
        self.num_requests = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listener.settimeout(0.05)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._is_closing = threading.Event()
        self._lock = threading.Lock()
        self._clients: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, name="hostile server")

    def __enter__(self) -> "HostileServer":
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._acceptor.join()
        for thread in self._threads:
            thread.join(10)

    def close(self) -> None:
        """No connection is taken any more, and those that are there end."""
        self._is_closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # close alone would wait for accept to return
        self._listener.close()
        with self._lock:
            for client in self._clients:
                with contextlib.suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._is_closing.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            with self._lock:
                self._clients.append(client)
            thread = threading.Thread(target=self._serve, args=(client,), name="hostile connection")
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(10)
        with client, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                data = client.recv(65536)
                if not data:
                    return
                head += data
            self.num_requests += 1
            self.play(client, head)
        with self._lock:
            self._clients.remove(client)
