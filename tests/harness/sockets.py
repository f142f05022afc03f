"""Ports on loopback."""

import socket


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def accepts(port: int) -> bool:
    """Whether somebody accepts connections there now."""
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0
