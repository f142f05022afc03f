"""A RawClient that speaks TLS."""

import ssl

from harness.certificates import connect
from harness.raw_http import TIMEOUT_S, Answer, RawClient


class TlsClient(RawClient):
    """One connection to a server whose certificate the context trusts."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self.sock = connect(port, context)
        self.sock.settimeout(TIMEOUT_S)
        self._pending = self._sent = b""


def ask_over_tls(
    port: int, context: ssl.SSLContext, method: str, path: str, *, headers: dict[str, str] | None = None
) -> Answer:
    """Sends one request without a body on a connection of its own and returns the answer."""
    with TlsClient(port, context) as client:
        client.send(method, path, None, headers)
        return client.read_answer(method)
