"""Limits and times of the HTTP boundary. Names of limits are those of `limit.name` in errors."""

from dataclasses import dataclass, field

from tidegate.http.cors import CorsPolicy
from tidegate.http.tls import TlsFiles


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """All that one application needs to know; nothing is read from elsewhere.

    `linger_s` bounds how long a body that we refused is still read and dropped: closing at once would reset the
    connection, and the client might lose the answer. `pending_body_bytes` bounds the bodies of all requests together.
    `has_open_metrics` frees /metrics from the admin credential.
    """

    body_bytes: int = 32 * 1024 * 1024
    pending_body_bytes: int = 512 * 1024 * 1024
    body_timeout_s: float = 30.0
    header_bytes: int = 64 * 1024
    uri_bytes: int = 8 * 1024
    heartbeat_s: float = 15.0
    slow_client_timeout_s: float = 30.0
    linger_s: float = 2.0
    queue_full_status: int = 429
    cors: CorsPolicy = field(default_factory=CorsPolicy)
    has_open_metrics: bool = False


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What an HTTP server needs beside its application and its socket.

    `max_requests` bounds how many requests run at once; idle streams count. `stop_grace_s` is how long `stop` waits
    for responses that are still being written; the drain comes before that and is not the server's business.
    `tls_poll_s` is how often the files of `tls` are looked at.
    """

    backlog: int = 16384
    max_requests: int = 65536
    header_timeout_s: float = 10.0
    stop_grace_s: float = 5.0
    tls: TlsFiles | None = None
    tls_poll_s: float = 5.0
