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

SocketFile = tuple[int, int]
"""A descriptor, and the number of the socket that it stands for: descriptors are used again."""

_DESCRIPTORS = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def abort_connections(peers: set[tuple[str, int]] | None = None, *, local_port: int | None = None) -> int:
    """Resets the TCP connections whose far end is in `peers`, or all at `local_port`. Returns how many.

    The owner of each socket sees an error or the end of the file on it, and closes it.
    """
    num_aborted = 0
    for name in os.listdir(_DESCRIPTORS):
        with contextlib.suppress(OSError, ValueError):  # closed meanwhile, or not connected
            num_aborted += _abort_descriptor(int(name), peers, local_port)
    return num_aborted


def find_sockets(peers: Container[tuple[str, int]]) -> tuple[dict[tuple[str, int], SocketFile], int]:
    """Returns this process's TCP sockets whose far end is in `peers`, and how many sockets were reset by their far end:
    those have no peer any more.
    """
    found: dict[tuple[str, int], SocketFile] = {}
    num_reset = 0
    for name in os.listdir(_DESCRIPTORS):
        with contextlib.suppress(OSError, ValueError):
            descriptor = int(name)
            status = os.fstat(descriptor)
            if not stat.S_ISSOCK(status.st_mode):
                continue
            peer, is_reset = _look_at(descriptor)
            num_reset += is_reset
            if peer is not None and peer in peers:
                found[peer] = (descriptor, status.st_ino)
    return found, num_reset


def abort_socket(descriptor: int) -> None:
    """Resets the connection of one descriptor. Its owner closes it."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as sock:
        _reset(sock)


def _look_at(descriptor: int) -> tuple[tuple[str, int] | None, bool]:
    """Returns the far end of a socket, and whether it was connected and is no more."""
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        if sock.family not in (socket.AF_INET, socket.AF_INET6):
            return None, False
        try:
            host, port = sock.getpeername()[:2]
        except OSError as error:
            is_listening = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            return None, error.errno == errno.ENOTCONN and not is_listening
        return (host, port), False


def _abort_descriptor(descriptor: int, peers: set[tuple[str, int]] | None, local_port: int | None) -> bool:
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return False
    # The duplicate keeps the socket itself, whatever its owner does with the descriptor from here on.
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        if sock.family not in (socket.AF_INET, socket.AF_INET6):
            return False
        peer = sock.getpeername()[:2]
        if peers is not None and peer not in peers:
            return False
        if local_port is not None and sock.getsockname()[1] != local_port:
            return False
        _reset(sock)
        return True


def _reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    sock.shutdown(socket.SHUT_RDWR)
