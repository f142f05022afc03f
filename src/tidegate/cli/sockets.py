"""The bound listeners of a server, before anything serves on them."""

import contextlib
import socket

from tidegate.cli.settings import Settings
from tidegate.http.listener import ListenError, bind_tcp


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`; names are resolved, and False where they cannot be."""
    with contextlib.suppress(OSError, UnicodeError):
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
        return all(address == "::1" or address.startswith("127.") for address in found)
    return False


class Sockets:
    """The two bound listeners. Raises ListenError when one cannot be had; then nothing is left bound."""

    def __init__(self, settings: Settings) -> None:
        server = settings.server
        self.public = bind_tcp(
            server.host,
            server.port,
            send_buffer_bytes=server.send_buffer_bytes,
            write_timeout_s=2 * server.slow_client_timeout_s,  # the last resort, behind our own watch
        )
        try:
            self.admin: socket.socket = bind_tcp(server.admin_host, server.admin_port)
        except ListenError:
            self.public.close()
            raise
