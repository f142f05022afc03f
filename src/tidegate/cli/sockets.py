"""The bound listeners of a server, before anything serves on them."""

import socket

from tidegate.cli.settings import Settings
from tidegate.http.listener import ListenError, bind_tcp


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    return host in ("localhost", "::1") or host.startswith("127.")


class Sockets:
    """The two bound listeners. Raises ListenError when one cannot be had; then nothing is left bound."""

    def __init__(self, settings: Settings) -> None:
        server = settings.server
        if not is_loopback(server.admin_host):
            raise ListenError(
                f"the admin listener has no credential yet and must stay on loopback, not on {server.admin_host}; "
                "reach it through a tunnel"
            )
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
