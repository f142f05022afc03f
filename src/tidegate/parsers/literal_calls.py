"""Reads calls written with literals: Python calls with keyword arguments, and a name with `{key:value}`.

Only a call with keyword arguments, or none, is a call: lists, links and positional arguments are content.
"""

import re

from tidegate.parsers.call_log import CallLog
from tidegate.parsers.json_text import quote
from tidegate.parsers.literal_reader import LiteralReader
from tidegate.parsers.named_json_calls import read_word
from tidegate.parsers.text_cursor import Reading, TextCursor
from tidegate.parsers.tool_format import BraceCalls, PythonCalls

_KEYWORD = re.compile(r"\w*")


class PythonReader:
    """Reads calls after the opening marker, or from the bracket where there is none."""

    def __init__(self, style: PythonCalls) -> None:
        self._style = style
        self._literal = LiteralReader()

    def read(self, cursor: TextCursor, log: CallLog, *, is_list: bool = False) -> Reading[bool]:
        """`is_list`: the opening bracket is already read. Returns whether all was well formed."""
        yield from cursor.blank(log.take)
        is_list = is_list or (yield from cursor.literal("[", log.take))
        if self._style.in_brackets and not is_list:
            log.reject()
            return False
        while True:
            yield from cursor.blank(log.take)
            if is_list and (yield from cursor.literal("]", log.take)):
                return True
            if not is_list and log.num_in_block and (yield from cursor.peek()) in ("<", ""):
                return True
            if not (yield from self._read_call(cursor, log)):
                log.reject()
                return False
            was_call = log.is_call
            log.next_call()
            yield from cursor.blank(log.take)
            if (yield from cursor.literal(",", log.take)):
                continue
            if is_list and (yield from cursor.peek()) != "]":
                return False
            if is_list and not was_call:
                log.reject()

    def _read_call(self, cursor: TextCursor, log: CallLog) -> Reading[bool]:
        name = yield from read_word(cursor, log)
        if not name or not (yield from cursor.literal("(", log.take)):
            return False
        keys: set[str] = set()
        while True:
            yield from cursor.blank(log.take)
            if (yield from cursor.literal(")", log.take)):
                break
            if keys and not (yield from self._read_comma(cursor, log)):
                return self._close(cursor, log)
            if keys and (yield from cursor.literal(")", log.take)):
                break
            if not (yield from self._read_argument(cursor, log, name, keys)):
                return self._close(cursor, log)
        if not keys:
            log.decide(name)
        log.argue("}" if keys else "{}")
        return True

    def _close(self, cursor: TextCursor, log: CallLog) -> bool:
        if log.is_call and not (cursor.is_over and cursor.is_cut):
            log.argue("}")
        return False

    def _read_comma(self, cursor: TextCursor, log: CallLog) -> Reading[bool]:
        if not (yield from cursor.literal(",", log.take)):
            return False
        yield from cursor.blank(log.take)
        return True

    def _read_argument(self, cursor: TextCursor, log: CallLog, name: str, keys: set[str]) -> Reading[bool]:
        pieces: list[str] = []

        def keep(text: str) -> None:
            log.take(text)
            pieces.append(text)

        yield from cursor.run(_KEYWORD, keep)
        key = "".join(pieces)
        yield from cursor.blank(log.take)
        if not key or not (yield from cursor.literal("=", log.take)):
            return False
        log.decide(name)
        log.argue(f"{', ' if keys else '{'}{quote(key)}: ")
        keys.add(key)
        return (yield from self._literal.read(cursor, log.take, log.argue))


class BraceReader:
    """Reads one call after its opening marker."""

    def __init__(self, style: BraceCalls) -> None:
        self._style = style
        self._literal = LiteralReader(style.quote)

    def read(self, cursor: TextCursor, log: CallLog) -> Reading[bool]:
        """Returns whether the call was well formed."""
        yield from cursor.blank(log.take)
        if not (yield from cursor.literal(self._style.lead, log.take)):
            log.reject()
            return False
        name = yield from read_word(cursor, log)
        if not name or (yield from cursor.peek()) != "{":
            log.reject()
            return False
        log.decide(name)
        return (yield from self._literal.read(cursor, log.take, log.argue))
