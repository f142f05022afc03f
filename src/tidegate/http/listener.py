"""Binds listening sockets, so that the port is known before a server starts and a refusal can be explained."""

import contextlib
import errno
import os
import socket
import stat
import sys
from pathlib import Path

_BACKLOG = 16384


class ListenError(Exception):
    """An address cannot be listened on. The message says which, why, and what to do."""


def bind_tcp(
    host: str,
    port: int,
    *,
    send_buffer_bytes: int | None = None,
    write_timeout_s: float | None = None,
    backlog: int = _BACKLOG,
) -> socket.socket:
    """Returns a listening socket. Port 0 lets the kernel choose: `getsockname` tells.

    Accepted connections inherit the options. `send_buffer_bytes` bounds what the kernel holds for a slow reader.
    `write_timeout_s` makes the kernel give up a connection whose far end accepts nothing for so long (Linux): the
    last resort behind the watch over streams, and the only one for whole replies. Raises ListenError.
    """
    family, address = _resolve(host, port)
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        if send_buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        if write_timeout_s is not None and sys.platform == "linux":
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(write_timeout_s * 1000))
        sock.bind(address)
        sock.listen(backlog)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise ListenError(_explain(error, host, port)) from error
    return sock


def bind_unix(path: Path, *, backlog: int = _BACKLOG) -> socket.socket:
    """Returns a listening Unix socket that only this user may open. Replaces a socket file that nobody listens on.

    Raises ListenError.
    """
    _remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(str(path))
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
        sock.listen(backlog)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise ListenError(f"cannot listen on {path}: {_reason(error)}") from error
    return sock


def describe(sock: socket.socket, *, is_tls: bool = False) -> str:
    """Returns the address of a bound socket as a URL for people."""
    name = sock.getsockname()
    if sock.family == socket.AF_UNIX:
        return f"unix:{name}"
    host, port = name[:2]
    scheme = "https" if is_tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str | int | bytes, ...]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as error:
        raise ListenError(f"cannot listen on {host}: this machine has no address of that name") from error
    family, _, _, _, address = found[0]
    return family, address


def _explain(error: OSError, host: str, port: int) -> str:
    where = f"{host}:{port}" if ":" not in host else f"[{host}]:{port}"
    match error.errno:
        case errno.EADDRINUSE:
            advice = "stop the program that listens there, or choose another port"
            return f"cannot listen on {where}: the port is taken; {advice}"
        case errno.EACCES:
            return f"cannot listen on {where}: ports below 1024 need special rights; choose a higher port"
        case errno.EADDRNOTAVAIL:
            return f"cannot listen on {where}: this machine has no such address; 0.0.0.0 means every address"
        case _:
            return f"cannot listen on {where}: {_reason(error)}"


def _remove_stale(path: Path) -> None:
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise ListenError(f"cannot listen on {path}: a file of that name is in the way")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        else:
            raise ListenError(f"cannot listen on {path}: another program listens there")


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else str(error)
