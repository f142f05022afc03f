"""ReplayStream: recorded event bytes as a stream."""

from collections.abc import Callable

from tidegate.serving.reply import Headers

PIECE_BYTES = 64 * 1024
_EVENT_END = b"\n\n"


class ReplayStream:
    """Implements `StreamReply`. Pieces end with an event where events are shorter than a piece.

    `on_close` is called once, with the cause.
    """

    def __init__(self, body: bytes, headers: Headers, on_close: Callable[[str], None]) -> None:
        self.headers = headers
        self._body = body
        self._position = 0
        self._on_close: Callable[[str], None] | None = on_close

    async def take(self) -> bytes | None:
        """See `StreamReply.take`; never waits."""
        start, end = self._position, self._position + PIECE_BYTES
        if start >= len(self._body):
            return None
        if end < len(self._body):
            found = self._body.rfind(_EVENT_END, start, end)
            end = found + len(_EVENT_END) if found >= start else end
        self._position = end
        return self._body[start:end]

    def nudge(self) -> None:
        """Nobody ever waits here."""

    def close(self, cause: str) -> None:
        self._body = b""
        if self._on_close is not None:
            tell, self._on_close = self._on_close, None
            tell(cause)
