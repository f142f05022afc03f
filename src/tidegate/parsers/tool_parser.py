"""The streaming parser of a model family, built from its description.

Decides which text is content and where calls begin and end; the reader of the family's style decides what a call is.
- Text that could still become a marker is held, at most the length of the longest one.
- An opening that turns out to be no call of an offered tool is content, with all that belongs to it. What has been
  read is not read again: a marker inside it opens nothing.
- Blanks before the first call, between calls and after the last one belong to the markup.
- Closing markers may be missing. One that comes late is dropped; one that closes nothing is content.
- Where the token budget ends the text, an opening that has not become a call is withheld, and so is a marker of which
  more than half has arrived, or any of it where a closing marker is still due.

Does not know tokens, stop strings, or reasoning, which is taken out before (`reasoning_parser`); harmony's channels
are the exception.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from tidegate.inference.event import ParsedEvent
from tidegate.parsers.call_log import CallLog
from tidegate.parsers.channel_reader import ChannelReader
from tidegate.parsers.json_calls import read_json_calls
from tidegate.parsers.literal_calls import BraceReader, PythonReader
from tidegate.parsers.marker_scanner import MarkerScanner
from tidegate.parsers.named_json_calls import NamedJsonReader
from tidegate.parsers.offered_tools import OfferedTools
from tidegate.parsers.tag_calls import TagReader
from tidegate.parsers.text_cursor import Reading, Sink, TextCursor, ignore
from tidegate.parsers.tool_format import (
    BraceCalls,
    ChannelCalls,
    JsonCalls,
    NamedJsonCalls,
    PythonCalls,
    TagCalls,
    ToolFormat,
)


class ToolParser:
    """Parses one choice. `mint_id` returns a new call id each time."""

    def __init__(self, form: ToolFormat, tools: OfferedTools, mint_id: Callable[[], str]) -> None:
        self._cursor = TextCursor()
        self._log = CallLog(tools, mint_id, self._cursor)
        self._reading = _reader_of(form).read(self._cursor, self._log)

    @property
    def num_scanned(self) -> int:
        """Characters looked at so far."""
        return self._cursor.num_scanned

    def feed(self, text: str) -> list[ParsedEvent]:
        if not text:
            return []
        self._cursor.push(text)
        next(self._reading, None)
        return self._log.drain()

    def finish(self, *, is_cut: bool = False) -> list[ParsedEvent]:
        self._cursor.end(is_cut=is_cut)
        next(self._reading, None)
        self._log.finish()
        return self._log.drain()


class _BlockReader:
    """Reads whole outputs of families that mark their calls. Holds nothing of any output."""

    def __init__(self, form: ToolFormat) -> None:
        self._form = form
        self._opens = MarkerScanner(*form.opens)
        self._closes = MarkerScanner(*form.closes)
        self._markers = MarkerScanner(*form.opens, *form.closes, *(form.section or ()), *form.dropped)
        self._block_opens = frozenset((*form.opens, *(form.section or ())[:1]))
        self._read_call = _call_reader(form)
        self._no_call = _no_call(form)

    def read(self, cursor: TextCursor, log: CallLog) -> Reading[None]:
        unclosed: set[str] = set()

        def content(text: str, show: Sink = log.content) -> None:
            is_torn = cursor.is_over and cursor.is_cut and self._markers.is_begun(text)
            if not (is_torn and (unclosed or self._markers.is_mostly(text))):
                show(text)

        if self._form.bare_starts:
            yield from self._read_bare(cursor, log, content, unclosed)
        while True:
            marker = yield from cursor.until(self._markers, content)
            if not marker:
                return
            if marker in self._form.opens and cursor.shows(self._no_call):
                # Nothing but speed: reading the block would give the same.
                log.content_marker(marker)
            elif marker in self._block_opens:
                log.open_block(marker)
                yield from self._read_block(cursor, log, marker, unclosed)
            elif marker in unclosed:
                unclosed.discard(marker)
            elif marker not in self._form.dropped:
                content(marker, log.content_marker)

    def _read_bare(self, cursor: TextCursor, log: CallLog, content: Sink, unclosed: set[str]) -> Reading[None]:
        """Reads calls that the output begins with, without a marker."""
        yield from cursor.blank(content)
        if (yield from cursor.peek()) in tuple(self._form.bare_starts):
            log.open_block("")
            yield from self._read_block(cursor, log, "", unclosed)

    def _read_block(self, cursor: TextCursor, log: CallLog, marker: str, unclosed: set[str]) -> Reading[None]:
        """Reads from behind an opening marker to the end of what it opened, closing marker included."""
        form = self._form
        is_section = form.section is not None and marker == form.section[0]
        if is_section:
            yield from cursor.blank(log.take)
            marker = yield from cursor.one_of(self._opens, log.take)
        if is_section and not marker:
            log.reject()
        else:
            is_well = yield from self._read_call(cursor, log, marker.endswith("["))
            if is_well or log.num_in_block:
                yield from self._read_close(cursor, log, unclosed)
        if form.section is not None and is_section and log.num_in_block:
            unclosed.add(form.section[1])
        log.close_block()

    def _read_close(self, cursor: TextCursor, log: CallLog, unclosed: set[str]) -> Reading[None]:
        if not self._form.closes:
            return
        is_markup = log.num_in_block > 0 and log.is_call is not False
        sink = ignore if is_markup else log.take
        yield from cursor.blank(sink)
        if not (yield from cursor.one_of(self._closes, sink)) and is_markup:
            unclosed.update(self._form.closes)


def _no_call(form: ToolFormat) -> re.Pattern[str]:
    """Returns what after an opening marker shows at once that no call follows: a first character of no call."""
    style = form.style
    firsts = r"\w.:\-\["
    if isinstance(style, JsonCalls):
        firsts = r"{\[\]"
    elif isinstance(style, PythonCalls) and style.in_brackets:
        firsts = r"\["
    elif isinstance(style, TagCalls) and style.name_open:
        firsts = re.escape(style.name_open[0] + style.lead[:1])
    return re.compile(rf"[ \t\r\n]*+[^{firsts}]")


CallReader = Callable[[TextCursor, CallLog, bool], Reading[bool]]


def _call_reader(form: ToolFormat) -> CallReader:
    """Returns what reads after an opening marker; its third argument: the marker ended with a list's bracket."""
    style = form.style
    if isinstance(style, JsonCalls):
        return lambda cursor, log, is_list: read_json_calls(cursor, log, style, is_list=is_list)
    if isinstance(style, PythonCalls):
        python = PythonReader(style)
        return lambda cursor, log, is_list: python.read(cursor, log, is_list=is_list)
    if isinstance(style, NamedJsonCalls):
        named = NamedJsonReader(style)
        return lambda cursor, log, _is_list: named.read(cursor, log)
    if isinstance(style, BraceCalls):
        brace = BraceReader(style)
        return lambda cursor, log, _is_list: brace.read(cursor, log)
    assert isinstance(style, TagCalls), "a channel format marks no calls"
    tags = TagReader(style)
    return lambda cursor, log, _is_list: tags.read(cursor, log)


@lru_cache(maxsize=64)
def _reader_of(form: ToolFormat) -> _BlockReader | ChannelReader:
    """Returns the reader of a family, made once."""
    return ChannelReader(form.style) if isinstance(form.style, ChannelCalls) else _BlockReader(form)
