"""SseReader: bytes of an event stream in, any fragmentation; events and deviations out.

Dispatches exactly what the HTML standard's event stream interpretation dispatches (section 9.2.6), so that any stream
can be read. Beside that, reports as findings everything that the standard forgives and our contract does not: frames
are `data: `, one line of JSON and two line feeds; between frames there may be heartbeats, comment lines ended by one
line feed; `[DONE]` is the last event and nothing follows.

Does not know: HTTP, what the JSON means, which order of chunks is right.
"""

import json
import re
from dataclasses import dataclass
from enum import Enum

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"[\r\n]")
_BREAKS_LINES_ELSEWHERE = re.compile("[\x85\u2028\u2029]")
DONE = "[DONE]"
MAX_FINDINGS = 1000
"""Later deviations of a stream are counted, not kept."""


class Deviation(Enum):
    BYTE_ORDER_MARK = "a byte order mark begins the stream"
    CARRIAGE_RETURN = "a line does not end in a single line feed"
    NOT_UTF8 = "a line is not UTF-8"
    NUL = "a line holds a NUL"
    OTHER_FIELD = "a field is not data"
    NO_SPACE = "no single space follows the colon of data"
    SEVERAL_DATA_LINES = "an event has more than one data line"
    UNESCAPED_LINE_BREAK = "data holds U+0085, U+2028 or U+2029"
    COMMENT_INSIDE_EVENT = "a comment stands between an event's data and its end"
    BLANK_AFTER_COMMENT = "a blank line follows a comment"
    EMPTY_EVENT = "a blank line ends no event"
    NOT_JSON = "data is not a JSON object"
    AFTER_DONE = "something follows [DONE]"
    CUT_OFF = "the stream ends inside an event or a line"


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One dispatched event. `offset` is where its first data line begins, in bytes from the start of the stream."""

    type: str
    data: str
    id: str
    offset: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One deviation from the contract's framing, at the line that begins at `offset`."""

    deviation: Deviation
    offset: int
    line: str
    """At most 100 characters of it."""


class SseReader:
    """One stream. Time and memory are linear in the input; one event is held at a time."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.num_findings = 0
        self.retry_ms: int | None = None
        self._partial = bytearray()
        self._line_at = 0
        self._read = 0
        self._after_cr = False
        self._data: list[str] = []
        self._data_at = 0
        self._type = ""
        self._id = ""
        self._has_comment = False
        self._is_done = False
        self._is_finished = False

    @property
    def is_done(self) -> bool:
        """Whether `[DONE]` has been dispatched."""
        return self._is_done

    def feed(self, data: bytes) -> list[SseEvent]:
        """Takes the next bytes; returns the events that they complete."""
        if self._is_finished:
            raise ValueError("feed after finish")
        events: list[SseEvent] = []
        start = 0
        if self._after_cr and data:
            self._after_cr = False
            if data[0] == 0x0A:
                start = 1
                self._line_at += 1
        while match := _LINE_END.search(data, start):
            end = match.start()
            is_cr = data[end] == 0x0D
            self._partial += data[start:end]
            line_at, line = self._line_at, bytes(self._partial)
            self._partial.clear()
            start = end + 1
            if is_cr:
                if start == len(data):
                    self._after_cr = True
                elif data[start] == 0x0A:
                    start += 1
            self._line_at = self._read + start
            events += self._take_line(line, line_at, is_cr=is_cr)
        self._partial += data[start:]
        self._read += len(data)
        return events

    def finish(self) -> None:
        """Ends the stream: an event without its blank line is discarded, as the standard says, and reported."""
        self._is_finished = True
        if self._partial or self._data or self._type:
            self._report(Deviation.CUT_OFF, self._line_at, self._partial.decode("utf-8", "replace"))

    def _report(self, deviation: Deviation, offset: int, line: str) -> None:
        self.num_findings += 1
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(deviation, offset, line[:100]))

    def _take_line(self, raw: bytes, offset: int, *, is_cr: bool) -> list[SseEvent]:
        if offset == 0 and raw.startswith(_BOM):
            raw = raw[len(_BOM) :]
            self._report(Deviation.BYTE_ORDER_MARK, offset, "")
        line = raw.decode("utf-8", "replace")
        if is_cr:
            self._report(Deviation.CARRIAGE_RETURN, offset, line)
        if self._is_done:
            self._report(Deviation.AFTER_DONE, offset, line)
        if not raw:
            return self._take_blank(offset)
        if line.encode() != raw:
            self._report(Deviation.NOT_UTF8, offset, line)
        if "\0" in line:
            self._report(Deviation.NUL, offset, line)
        if line.startswith(":"):
            self._has_comment = True
            if self._data or self._type:
                self._report(Deviation.COMMENT_INSIDE_EVENT, offset, line)
        else:
            self._has_comment = False
            self._take_field(line, offset)
        return []

    def _take_field(self, line: str, offset: int) -> None:
        name, colon, value = line.partition(":")
        if value.startswith(" "):
            value = value[1:]
            has_space = True
        else:
            has_space = False
        if name != "data":
            self._report(Deviation.OTHER_FIELD, offset, line)
        if name == "data":
            if not (colon and has_space) or value.startswith(" "):
                self._report(Deviation.NO_SPACE, offset, line)
            if _BREAKS_LINES_ELSEWHERE.search(value):
                self._report(Deviation.UNESCAPED_LINE_BREAK, offset, line)
            if self._data:
                self._report(Deviation.SEVERAL_DATA_LINES, offset, line)
            else:
                self._data_at = offset
            self._data.append(value)
        elif name == "event":
            self._type = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            # More digits than this mean nothing, and Python refuses to read them.
            self.retry_ms = int(value[:4000])

    def _take_blank(self, offset: int) -> list[SseEvent]:
        data, event_type = self._data, self._type
        self._data, self._type = [], ""
        if self._has_comment:
            self._has_comment = False
            self._report(Deviation.BLANK_AFTER_COMMENT, offset, "")
        elif not data:
            self._report(Deviation.EMPTY_EVENT, offset, "")
        if not data:
            return []
        text = "\n".join(data)
        if text == DONE:
            self._is_done = True
        elif not _is_json_object(text):
            self._report(Deviation.NOT_JSON, self._data_at, text)
        return [SseEvent(event_type or "message", text, self._id, self._data_at)]


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_constant=_refuse_constant), dict)
    except (ValueError, RecursionError):
        return False
