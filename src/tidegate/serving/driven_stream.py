"""A streamed reply: the driver's events as bytes, in the order of the contract."""

from typing import Protocol

from tidegate.contract.error_table import error_answer
from tidegate.inference.event import StreamEvent
from tidegate.lifecycle.events import Event
from tidegate.serving.driver import RequestDriver
from tidegate.serving.reply import Headers

STREAM_STATUS = 200


class StreamWriter(Protocol):
    """Renders one stream's events as bytes: what comes first, each event, what comes last."""

    def open(self) -> bytes: ...

    def render(self, index: int, event: StreamEvent) -> bytes: ...

    def close(self) -> bytes: ...


class DrivenStream:
    """Implements `StreamReply`. Creating it sends the head: from here on failures are events."""

    def __init__(self, driver: RequestDriver, writer: StreamWriter, headers: Headers) -> None:
        self.headers = headers
        self._driver = driver
        self._writer = writer
        self._opening: bytes | None = writer.open()
        self._is_over = False
        driver.note_sent(Event.SEND_HEAD, STREAM_STATUS)

    async def take(self) -> bytes | None:
        if self._is_over:
            return None
        if self._opening:
            opening, self._opening = self._opening, None
            return opening
        items = await self._driver.take()
        frames = [self._writer.render(index, event) for index, event in items or ()]
        if items and self._driver.machine.is_reply_open:
            self._driver.note_sent(Event.SEND_FRAME, STREAM_STATUS)
        if self._driver.is_drained:
            frames.append(self._end())
        return b"".join(frames)

    def nudge(self) -> None:
        self._driver.nudge()

    def close(self, cause: str) -> None:
        self._is_over = True
        if cause != "done":
            self._driver.disconnect(cause)

    def _end(self) -> bytes:
        """A whole stream ends with its marker; a failed one with one error event and nothing after it."""
        self._is_over = True
        if not self._driver.machine.is_reply_open:
            return b""
        error = self._driver.error
        if error is not None:
            self._driver.note_sent(Event.SEND_ERROR, STREAM_STATUS)
            return b"data: " + error_answer(error, nothing_sent=False).body + b"\n\n"
        self._driver.note_sent(Event.SEND_DONE, STREAM_STATUS)
        return self._writer.close()
