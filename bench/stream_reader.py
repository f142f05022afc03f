"""Opens many streams at once and reads them to the end, cheaply: one thread, one selector, bytes dropped."""

import json
import selectors
import socket
import time
from dataclasses import dataclass


@dataclass(slots=True)
class Totals:
    """`num_frames` counts `data:` events over all streams; `first_s` is when each stream's first event came."""

    num_streams: int
    num_frames: int
    num_bytes: int
    wall_s: float
    first_s: list[float]


def http_request(path: str, body: object) -> bytes:
    """Returns the bytes of one POST that closes its connection."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


def open_streams(port: int, requests: list[bytes]) -> list[socket.socket]:
    """Connects and sends one request on each connection."""
    sockets = []
    for request in requests:
        sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        sock.sendall(request)
        sock.setblocking(False)
        sockets.append(sock)
    return sockets


def read_streams(sockets: list[socket.socket], *, timeout_s: float = 600.0) -> Totals:
    """Reads every stream until its end marker, or its connection's end."""
    start = time.perf_counter()
    totals = Totals(len(sockets), 0, 0, 0.0, [])
    selector = selectors.DefaultSelector()
    tails: dict[socket.socket, bytes] = {}
    for sock in sockets:
        selector.register(sock, selectors.EVENT_READ)
    while selector.get_map() and time.perf_counter() - start < timeout_s:
        for key, _ in selector.select(1.0):
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            data = sock.recv(1 << 16)
            if sock not in tails and b"data: " in data:
                totals.first_s.append(time.perf_counter() - start)
            totals.num_bytes += len(data)
            totals.num_frames += data.count(b"data: ")
            tail = tails.get(sock, b"") + data
            tails[sock] = tail[-16:]
            if not data or b"data: [DONE]" in tail or tail.endswith(b"0\r\n\r\n"):
                selector.unregister(sock)
                sock.close()
    totals.wall_s = time.perf_counter() - start
    if selector.get_map():
        raise TimeoutError(f"{len(selector.get_map())} streams did not end in {timeout_s} s")
    return totals
