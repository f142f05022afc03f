"""Ends connections from outside the HTTP server: a server keeps a connection open while it has bytes to flush, and a
client that reads nothing would hold it for ever.

Finds the server's sockets among the process's file descriptors by the addresses at both ends, so it works with any
HTTP server in this process, and touches nothing else. Costs a few system calls for each open descriptor: for rare use.
"""

import contextlib
import os
import socket
import stat
import struct
import sys

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
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        sock.shutdown(socket.SHUT_RDWR)
        return True
