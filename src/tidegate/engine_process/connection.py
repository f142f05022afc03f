"""One server process's connection, seen from the engine: commands in, frames out, nothing ever waits."""

import socket
from collections import deque

from tidegate.engine.framing import FrameDecoder, decode_command
from tidegate.engine.messages import Command

_RECEIVE_BYTES = 256 * 1024
_RECEIVES_A_TURN = 8


class ConnectionGone(Exception):
    """The other side has closed, or reads far too slowly."""


class Connection:
    """Owns a non-blocking socket and what it has not taken yet."""

    def __init__(self, sock: socket.socket, client: int, max_unsent_bytes: int) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.client = client
        self.num_unsent_bytes = 0
        self.is_watched_for_write = False
        self._max_unsent_bytes = max_unsent_bytes
        self._unsent: deque[memoryview] = deque()
        self._decoder = FrameDecoder()

    def receive(self) -> list[Command]:
        """Returns what has arrived, a bounded part of it. Raises ConnectionGone or FramingError."""
        commands: list[Command] = []
        for _ in range(_RECEIVES_A_TURN):
            try:
                data = self.sock.recv(_RECEIVE_BYTES)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                raise ConnectionGone(str(error)) from error
            if not data:
                raise ConnectionGone("closed by the server")
            commands += [decode_command(frame) for frame in self._decoder.feed(data)]
            if len(data) < _RECEIVE_BYTES:
                break
        return commands

    def send(self, frame: bytes) -> None:
        """Sends what the socket takes and keeps the rest. Raises ConnectionGone, also when too much is kept."""
        self._unsent.append(memoryview(frame))
        self.num_unsent_bytes += len(frame)
        if len(self._unsent) == 1:
            self.flush()
        if self.num_unsent_bytes > self._max_unsent_bytes:
            raise ConnectionGone(f"{self.num_unsent_bytes} bytes unread, at most {self._max_unsent_bytes} are kept")

    def flush(self) -> None:
        """Sends more of what was kept. Raises ConnectionGone."""
        while self._unsent:
            part = self._unsent[0]
            try:
                num_sent = self.sock.send(part)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                raise ConnectionGone(str(error)) from error
            self.num_unsent_bytes -= num_sent
            if num_sent == len(part):
                self._unsent.popleft()
            else:
                self._unsent[0] = part[num_sent:]

    def close(self, last_frame: bytes = b"", timeout_s: float = 1.0) -> None:
        """Closes; tries first, for a bounded time, to send what was kept and `last_frame`."""
        try:
            if last_frame:
                self.sock.settimeout(timeout_s)
                self.sock.sendall(b"".join([*self._unsent, last_frame]))
        except OSError:
            pass
        finally:
            self._unsent.clear()
            self.sock.close()
