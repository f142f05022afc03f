"""What HTTP hands to the service: the caller's words, already separated from the wire."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.lifecycle.principal import ANONYMOUS, Principal
from tidegate.observability.access_log import AccessRecord
from tidegate.observability.request_trace import RequestTrace


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request to a generating or tokenizing route.

    `wire_id` is what `X-Request-Id` answers. `received_at` is an instant of the monotonic clock. `headers` holds the
    request's headers, lower-case names.
    """

    route: str
    wire_id: str
    received_at: float
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    principal: Principal = ANONYMOUS
    record: AccessRecord = field(default_factory=AccessRecord)
    trace: RequestTrace | None = None

    @property
    def num_retries(self) -> int:
        """The client's own count of earlier attempts; 0 where it says nothing, or nonsense."""
        return count_retries(self.headers)


def count_retries(headers: Mapping[str, str]) -> int:
    """Returns the client's own count of earlier attempts; 0 where it says nothing, or nonsense."""
    given = headers.get("x-stainless-retry-count", "0")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 4 else 0
