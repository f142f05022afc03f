"""A streamed reply: the driver's events as bytes, in the order of the contract."""

from typing import Protocol

from tidegate.inference.event import StreamEvent
from tidegate.lifecycle.events import Event
from tidegate.serving.driver import STREAM_STATUS, RequestDriver
from tidegate.serving.reply import Headers


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
        self._machine = driver.machine
        self._mailbox = driver.mailbox
        self._writer = writer
        self._render = writer.render
        self._opening: bytes | None = writer.open()
        self._is_over = False
        driver.decide_status()

    async def take(self) -> bytes | None:
        if self._is_over:
            return None
        if self._opening:
            opening, self._opening = self._opening, None
            return opening
        items = await self._mailbox.take()
        self._driver.note_taken()
        frames = [self._render(index, event) for index, event in items or ()]
        if frames and self._machine.is_reply_open:
            self._machine.apply(Event.SEND_FRAME)
        if self._mailbox.is_drained and not (frames and self._driver.error is not None):
            frames.append(self._end())
        return frames[0] if len(frames) == 1 else b"".join(frames)

    def nudge(self) -> None:
        self._driver.nudge()

    def close(self, cause: str) -> None:
        self._is_over = True
        if cause != "done":
            self._driver.disconnect(cause)

    def _end(self) -> bytes:
        """Returns what comes last. Raises the error of a request that failed: the error event is HTTP's to write."""
        self._is_over = True
        if not self._driver.machine.is_reply_open:
            return b""
        error = self._driver.error
        if error is not None:
            self._driver.note_sent(Event.SEND_ERROR, STREAM_STATUS)
            raise error
        self._driver.note_sent(Event.SEND_DONE, STREAM_STATUS)
        return self._writer.close()
