"""What the service hands back to HTTP."""

from dataclasses import dataclass, field
from typing import Protocol

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class WholeReply:
    """One JSON body."""

    body: bytes
    status: int = 200
    headers: Headers = field(default_factory=list)


class StreamReply(Protocol):
    """An event stream that is ready to begin: the status is 200 from here on."""

    @property
    def headers(self) -> Headers: ...

    async def take(self) -> bytes | None:
        """Waits for bytes to send; None when the stream has ended, after which nothing follows.

        Returns b"" when woken by `nudge` with nothing to send. Cancelling a `take` loses nothing. Raises ServeError,
        after all earlier bytes were taken, when the work failed: HTTP then writes the error event and closes the
        connection without the end marker.
        """
        ...

    def nudge(self) -> None:
        """Wakes a waiting `take`."""
        ...

    def close(self, cause: str) -> None:
        """Says that nobody will read on; aborts the work if it is unfinished. Idempotent.

        `cause` is "client_gone", "slow_client", "shutdown" or "done".
        """
        ...


Reply = WholeReply | StreamReply
