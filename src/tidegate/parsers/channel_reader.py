"""Reads output that consists of messages with headers: gpt-oss's harmony.

A message whose header names an offered tool as its recipient is a call, whatever its channel; one on the reasoning
channel is reasoning; every other is content. Recipients may stand in the role's or in the channel's part of the
header. End markers may be missing. A message to anybody else is content, markup and all.
"""

import re

from tidegate.parsers.call_log import CallLog
from tidegate.parsers.json_calls import both_sinks
from tidegate.parsers.marker_scanner import MarkerScanner
from tidegate.parsers.text_cursor import Reading, Sink, TextCursor, ignore
from tidegate.parsers.tool_format import ChannelCalls

_RECIPIENT = re.compile(r"(?:^|\s)to=([^\s<]+)")
_WORD = re.compile(r"\s*(\w*)")


class ChannelReader:
    """Reads the whole output."""

    def __init__(self, style: ChannelCalls) -> None:
        self._style = style
        self._markers = MarkerScanner(style.start, style.channel, style.message, *style.ends)
        self._body_ends = MarkerScanner(style.start, style.channel, *style.ends)

    def read(self, cursor: TextCursor, log: CallLog) -> Reading[None]:
        # The prompt ends with the role, so the output may begin in the middle of a header.
        opening = MarkerScanner(*(f"{blank}{self._style.recipient}" for blank in ("", " ")))
        marker = yield from cursor.one_of(opening, ignore, is_markup=False)
        while True:
            if not marker:
                marker = yield from cursor.until(self._markers, self._content_sink(cursor, log))
            if not marker:
                return
            if marker in self._style.ends:
                marker = ""
                continue
            log.open_block(marker)
            marker = yield from self._read_message(cursor, log, marker)
            log.close_block()

    def _content_sink(self, cursor: TextCursor, log: CallLog) -> Sink:
        def sink(text: str) -> None:
            if not (cursor.is_over and cursor.is_cut and self._markers.is_mostly(text)):
                log.content(text)

        return sink

    def _read_message(self, cursor: TextCursor, log: CallLog, marker: str) -> Reading[str]:
        """Reads a message from its first marker; returns the marker of the next one where that ended it."""
        header: list[str] = ["\n" if marker == self._style.channel else "" if marker == self._style.start else marker]

        def keep(text: str) -> None:
            log.take(text)
            header.append(text)

        while marker != self._style.message:
            marker = yield from cursor.until(self._markers, keep)
            log.take_marker(marker)
            if not marker or marker in self._style.ends:
                log.reject()
                return ""
            header.append("\n" if marker == self._style.channel else " ")
        role, _, channel = "".join(header).partition("\n")
        recipient = _RECIPIENT.search(f"{role} {channel}")
        if recipient is not None:
            return (yield from self._read_call(cursor, log, f"to={recipient[1]}"))
        log.drop_held()
        found = _WORD.match(channel)
        is_reasoning = found is not None and found[1] == self._style.reasoning_channel
        sink = log.reasoning if is_reasoning else self._content_sink(cursor, log)
        end = yield from cursor.until(self._body_ends, sink)
        return "" if end in self._style.ends else end

    def _read_call(self, cursor: TextCursor, log: CallLog, recipient: str) -> Reading[str]:
        name = recipient.removeprefix(self._style.recipient)
        if name == recipient:
            log.reject()
        else:
            log.decide(name)
        yield from cursor.blank(log.take)
        sink = both_sinks(log)
        if (yield from cursor.peek()) == "{":
            yield from cursor.value(sink)
            sink = log.take
        end = yield from cursor.until(self._body_ends, sink)
        if end in self._style.ends:
            log.take_marker(end)
            return ""
        return end
