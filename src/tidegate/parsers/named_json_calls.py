"""Reads calls that are a name, a marker, and the arguments as a JSON object."""

import re

from tidegate.parsers.call_log import CallLog
from tidegate.parsers.json_calls import both_sinks, read_json_calls
from tidegate.parsers.marker_scanner import MarkerScanner
from tidegate.parsers.text_cursor import Reading, TextCursor
from tidegate.parsers.tool_format import NamedJsonCalls

NAME = re.compile(r"[A-Za-z0-9_.:-]*")
"""What names and ids of calls consist of."""

_INDEX = re.compile(r":[0-9]+\Z")


class NamedJsonReader:
    """Reads one call after its opening marker. Made once for a format."""

    def __init__(self, style: NamedJsonCalls) -> None:
        self._style = style
        marks = (*style.name_ends, *((style.id_mark,) if style.id_mark else ()))
        self._marks = MarkerScanner(*marks)

    def read(self, cursor: TextCursor, log: CallLog) -> Reading[bool]:
        """Returns whether the call was well formed."""
        style = self._style
        yield from cursor.blank(log.take)
        if style.list_form is not None and (yield from cursor.peek()) == "[":
            return (yield from read_json_calls(cursor, log, style.list_form))
        if style.lead:
            yield from cursor.literal(style.lead, log.take)
            yield from cursor.blank(log.take)
        name = yield from read_word(cursor, log)
        call_id: str | None = None
        mark = yield from self._read_mark(cursor, log)
        if mark and mark == style.id_mark:
            call_id = yield from read_word(cursor, log)
            mark = yield from self._read_mark(cursor, log)
        if not name or not mark or mark == style.id_mark:
            log.reject()
            return False
        if style.has_index:
            call_id = name if _INDEX.search(name) else None
            name = _INDEX.sub("", name)
        self._decide(log, name, call_id)
        return (yield from self._read_arguments(cursor, log))

    def _decide(self, log: CallLog, name: str, call_id: str | None) -> None:
        plain = name.removeprefix(self._style.name_prefix)
        log.decide(plain if log.offers(plain) else name, call_id)

    def _read_mark(self, cursor: TextCursor, log: CallLog) -> Reading[str]:
        """Reads what ends a name; the brace of the arguments is seen but left."""
        if "{" in self._style.name_ends and (yield from cursor.peek()) == "{":
            return "{"
        return (yield from cursor.one_of(self._marks, log.take))

    def _read_arguments(self, cursor: TextCursor, log: CallLog) -> Reading[bool]:
        yield from cursor.blank(log.take)
        is_well = True
        if (yield from cursor.peek()) == "{":
            is_well = yield from cursor.value(both_sinks(log))
        if is_well and self._style.tail:
            yield from cursor.blank(log.take)
            yield from cursor.literal(self._style.tail, log.take)
        return is_well


def read_word(cursor: TextCursor, log: CallLog) -> Reading[str]:
    """Reads a name or an id."""
    pieces: list[str] = []

    def keep(text: str) -> None:
        log.take(text)
        pieces.append(text)

    yield from cursor.run(NAME, keep)
    return "".join(pieces)
