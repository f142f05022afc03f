"""Reads calls whose parameters stand in tags, as plain text: XML-like, but nothing in them is XML.

A value is everything up to its closing tag, unchanged. Values of string parameters come out as they arrive; others
when they are complete, as the JSON that the tool's schema says.
"""

import re

from tidegate.parsers.call_log import CallLog
from tidegate.parsers.json_text import escape, is_json, quote
from tidegate.parsers.marker_scanner import MarkerScanner
from tidegate.parsers.named_json_calls import read_word
from tidegate.parsers.offered_tools import ToolSchema
from tidegate.parsers.text_cursor import Reading, TextCursor
from tidegate.parsers.tool_format import TagCalls

_KEY = re.compile(r'[^<>"\r\n]*')


class _Parameters:
    """The arguments of one call while they are read."""

    def __init__(self, schema: ToolSchema) -> None:
        self.schema = schema
        self.keys: set[str] = set()

    def lead_of(self, key: str) -> str:
        """Returns what the JSON of the arguments needs before the value of `key`."""
        lead = f"{', ' if self.keys else '{'}{quote(key)}: "
        self.keys.add(key)
        return lead


class TagReader:
    """Reads one call after its opening marker. Made once for a format."""

    def __init__(self, style: TagCalls) -> None:
        self._style = style
        self._value_ends = MarkerScanner(*style.value_ends)
        self._after = MarkerScanner(*filter(None, (style.param_open, style.call_end)))
        self._types = (
            MarkerScanner(*(f"{word}{style.type_end}" for word in ("true", "false"))) if style.type_end else None
        )

    def read(self, cursor: TextCursor, log: CallLog) -> Reading[bool]:
        """Returns whether the call was well formed; closing tags that are missing are forgiven."""
        name = yield from self._read_name(cursor, log)
        if not name:
            log.reject()
            return False
        log.decide(name)
        parameters = _Parameters(log.schema_of(name) or ToolSchema(None))
        is_well = yield from self._read_parameters(cursor, log, parameters)
        if not (cursor.is_over and cursor.is_cut and not is_well):
            log.argue("}" if parameters.keys else "{}")
        return is_well

    def _read_name(self, cursor: TextCursor, log: CallLog) -> Reading[str]:
        style = self._style
        if style.name_open:
            yield from cursor.blank(log.take)
        if style.lead:
            yield from cursor.literal(style.lead, log.take)
            yield from cursor.blank(log.take)
        if style.name_open and not (yield from cursor.literal(style.name_open, log.take)):
            return ""
        name = yield from read_word(cursor, log)
        if style.name_end:
            return name if (yield from cursor.literal(style.name_end, log.take)) else ""
        # A name without a tag of its own is complete when something else follows.
        yield from cursor.blank(log.take)
        return name if (yield from cursor.peek()) == "<" else ""

    def _read_parameters(self, cursor: TextCursor, log: CallLog, parameters: _Parameters) -> Reading[bool]:
        style = self._style
        end = ""
        while True:
            if not end or end.strip() not in (style.param_open, style.call_end):
                yield from cursor.blank(log.take)
                end = yield from cursor.one_of(self._after, log.take)
            if not end:
                # Without a tag of its own the call ends with the block's closing marker.
                return (yield from cursor.peek()) == "<"
            if not end.endswith(style.param_open):
                return True
            key = yield from self._read_key(cursor, log)
            if key is None:
                return False
            end = yield from self._read_value(cursor, log, parameters, key)
            if not end:
                return False

    def _read_key(self, cursor: TextCursor, log: CallLog) -> Reading[str | None]:
        pieces: list[str] = []

        def keep(text: str) -> None:
            log.take(text)
            pieces.append(text)

        yield from cursor.run(_KEY, keep)
        if not (yield from cursor.literal(self._style.key_end, log.take)):
            return None
        if self._style.value_open:
            yield from cursor.blank(log.take)
            if not (yield from cursor.literal(self._style.value_open, log.take)):
                return None
        return "".join(pieces)

    def _read_value(self, cursor: TextCursor, log: CallLog, parameters: _Parameters, key: str) -> Reading[str]:
        """Reads a value and the marker that ends it, which is returned; "" where the text ends before."""
        said = ""
        if self._types is not None:
            said = yield from cursor.one_of(self._types, log.take)
            if not said:
                return ""
        if self._style.value_lead:
            yield from cursor.literal(self._style.value_lead, log.take)
        if key in parameters.keys:
            end = yield from cursor.until(self._value_ends, log.take)
        elif said.startswith("true") or (not said and parameters.schema.is_text(key)):
            end = yield from self._read_text(cursor, log, parameters.lead_of(key))
        else:
            end = yield from self._read_typed(cursor, log, parameters, key, is_said=bool(said))
        log.take_marker(end)
        return end

    def _read_text(self, cursor: TextCursor, log: CallLog, lead: str) -> Reading[str]:
        def sink(text: str) -> None:
            log.take(text)
            log.argue(escape(text))

        log.argue(f'{lead}"')
        end = yield from cursor.until(self._value_ends, sink)
        if end or not cursor.is_cut:
            log.argue('"')
        return end

    def _read_typed(
        self, cursor: TextCursor, log: CallLog, parameters: _Parameters, key: str, *, is_said: bool
    ) -> Reading[str]:
        pieces: list[str] = []

        def keep(text: str) -> None:
            log.take(text)
            pieces.append(text)

        end = yield from cursor.until(self._value_ends, keep)
        text = "".join(pieces)
        if end or not cursor.is_cut:
            bare = text.strip(" \t\r\n")
            value = bare if is_said and is_json(bare) else parameters.schema.to_json(key, text)
            log.argue(parameters.lead_of(key) + value)
        return end
