"""Ends connections from outside the HTTP server: a server keeps a connection open while it has bytes to flush, and a
client that reads nothing would hold it for ever.

Finds the server's sockets among the process's file descriptors by the addresses at both ends, so it works with any
HTTP server in this process, and touches nothing else. Costs a few system calls for each open descriptor: for rare use.
"""

import contextlib
import errno
import os
import socket
import stat
import struct
import sys
from collections.abc import Container

Line = tuple[str, int, int]
"""A connection: address and port of its far end, and the port at our end. A client may use one port of its own towards
several of ours at once."""
SocketFile = tuple[int, int]
"""A descriptor, and the number of the socket that it stands for: descriptors are used again."""

_DESCRIPTORS = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def abort_connections(lines: set[Line] | None = None, *, local_port: int | None = None) -> int:
    """Resets the TCP connections in `lines`, or all at `local_port`. Returns how many.

    The owner of each socket sees an error or the end of the file on it, and closes it.
    """
    num_aborted = 0
    for name in os.listdir(_DESCRIPTORS):
        with contextlib.suppress(OSError, ValueError):  # closed meanwhile, or not connected
            num_aborted += _abort_descriptor(int(name), lines, local_port)
    return num_aborted


def find_sockets(lines: Container[Line]) -> tuple[dict[Line, SocketFile], set[int]]:
    """Returns this process's TCP sockets for `lines`, and the ports at our end of sockets that were reset by their far
    end: those have no peer any more.
    """
    found: dict[Line, SocketFile] = {}
    reset_ports: set[int] = set()
    for name in os.listdir(_DESCRIPTORS):
        with contextlib.suppress(OSError, ValueError):
            descriptor = int(name)
            status = os.fstat(descriptor)
            if not stat.S_ISSOCK(status.st_mode):
                continue
            line, reset_port = _look_at(descriptor)
            if reset_port is not None:
                reset_ports.add(reset_port)
            if line is not None and line in lines:
                found[line] = (descriptor, status.st_ino)
    return found, reset_ports


def abort_socket(descriptor: int) -> None:
    """Resets the connection of one descriptor. Its owner closes it."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as sock:
        _reset(sock)


def _look_at(descriptor: int) -> tuple[Line | None, int | None]:
    """Returns both ends of a socket; or the port at our end of one that was connected and is no more."""
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        if sock.family not in (socket.AF_INET, socket.AF_INET6):
            return None, None
        try:
            return _line_of(sock), None
        except OSError as error:
            is_listening = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            return None, sock.getsockname()[1] if error.errno == errno.ENOTCONN and not is_listening else None


def _line_of(sock: socket.socket) -> Line:
    host, port = sock.getpeername()[:2]
    return host, port, sock.getsockname()[1]


def _abort_descriptor(descriptor: int, lines: set[Line] | None, local_port: int | None) -> bool:
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return False
    # The duplicate keeps the socket itself, whatever its owner does with the descriptor from here on.
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        if sock.family not in (socket.AF_INET, socket.AF_INET6):
            return False
        line = _line_of(sock)
        if (lines is not None and line not in lines) or (local_port is not None and line[2] != local_port):
            return False
        _reset(sock)
        return True


def _reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    sock.shutdown(socket.SHUT_RDWR)
