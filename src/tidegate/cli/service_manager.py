"""ServiceManager: tells systemd when the server is ready, and when it has begun to end (sd_notify(3)).

Nothing is told where nobody asks: systemd names its socket in NOTIFY_SOCKET, for services of `Type=notify`. What
cannot be sent is left out: a server is not worse for a manager that does not listen.
"""

import contextlib
import socket
from collections.abc import MutableMapping

_VARIABLE = "NOTIFY_SOCKET"
END_MARGIN_S = 30.0
"""What ending may take beyond the time of running requests: their last words, both listeners, the engine."""


class ServiceManager:
    """Reads and removes NOTIFY_SOCKET at once: engines and workers are started without it."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        self._address = environment.pop(_VARIABLE, "")

    def tell_ready(self, url: str) -> None:
        """Requests are taken from now on."""
        self._send("READY=1", f"STATUS=serving on {url}")

    def tell_ending(self, timeout_s: float) -> None:
        """Running requests have `timeout_s` left. Asks for that time whatever the unit's TimeoutStopSec says."""
        left_us = round((timeout_s + END_MARGIN_S) * 1_000_000)
        words = f"STATUS=finishing running requests, at most {timeout_s:g} s"
        self._send("STOPPING=1", words, f"EXTEND_TIMEOUT_USEC={left_us}")

    def _send(self, *lines: str) -> None:
        if not self._address.startswith(("/", "@")):
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto("\n".join(lines).encode(), address)
