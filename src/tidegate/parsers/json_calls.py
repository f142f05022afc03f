"""Reads calls that are JSON objects with a name and arguments, alone, one after the other, or in a list.

The arguments come out as the model wrote them. Where they stand before the name they wait for it; where they are a
JSON string that holds JSON, they are decoded once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode

from tidegate.parsers.call_log import CallLog
from tidegate.parsers.string_reading import read_json_string
from tidegate.parsers.text_cursor import Reading, TextCursor
from tidegate.parsers.tool_format import JsonCalls


@dataclass(slots=True)
class _Fields:
    """What is known of one object so far."""

    name: str | None = None
    has_arguments: bool = False


def read_json_calls(cursor: TextCursor, log: CallLog, style: JsonCalls, *, is_list: bool = False) -> Reading[bool]:
    """Reads after the opening marker; `is_list`: the marker was the list's bracket. Returns whether all was well.

    A call that is not well formed ends the reading, where it stops being so.
    """
    if not is_list:
        yield from cursor.blank(log.take)
        is_list = yield from cursor.literal("[", log.take)
    separator = "," if is_list else style.separator
    while True:
        yield from cursor.blank(log.take)
        if is_list and (yield from cursor.literal("]", log.take)):
            return True
        if (yield from cursor.peek()) != "{":
            return False
        if not (yield from _read_object(cursor, log, style)):
            return False
        if not separator:
            return True
        if not (yield from _goes_on(cursor, log, separator, is_list=is_list)):
            return not is_list


def _goes_on(cursor: TextCursor, log: CallLog, separator: str, *, is_list: bool) -> Reading[bool]:
    """Reads up to the next object, if there is one. What stands between two objects belongs to the next one."""
    was_call = log.is_call
    log.next_call()
    yield from cursor.blank(log.take)
    if (yield from cursor.literal(separator, log.take)):
        return True
    if is_list and (yield from cursor.peek()) == "]":
        if not was_call:
            log.reject()
        return True
    return False


def _read_object(cursor: TextCursor, log: CallLog, style: JsonCalls) -> Reading[bool]:
    fields = _Fields()
    yield from cursor.literal("{", log.take)
    while True:
        yield from cursor.blank(log.take)
        if (yield from cursor.literal("}", log.take)):
            break
        if (yield from cursor.literal(",", log.take)):
            continue
        key = yield from _read_string(cursor, log.take)
        if key is None:
            return False
        yield from cursor.blank(log.take)
        if not (yield from cursor.literal(":", log.take)):
            return False
        yield from cursor.blank(log.take)
        if not (yield from _read_field(cursor, log, style, fields, key)):
            return False
    if fields.name is not None and not style.needs_arguments:
        log.decide(fields.name)
    log.reject()
    return True


def _read_field(cursor: TextCursor, log: CallLog, style: JsonCalls, fields: _Fields, key: str) -> Reading[bool]:
    if key in style.name_keys and fields.name is None:
        fields.name = yield from _read_string(cursor, log.take)
        if fields.name is None:
            return False
        if fields.has_arguments or not style.needs_arguments:
            log.decide(fields.name)
        elif not log.offers(fields.name):
            log.reject()
        return True
    if key in style.arguments_keys and not fields.has_arguments:
        return (yield from _read_arguments(cursor, log, style, fields))
    return (yield from cursor.value(log.take))


def _read_arguments(cursor: TextCursor, log: CallLog, style: JsonCalls, fields: _Fields) -> Reading[bool]:
    first = yield from cursor.peek()
    if first == "{" or (first and first not in '"n' and not style.needs_arguments):
        fields.has_arguments = True
        if fields.name is not None:
            log.decide(fields.name)
        return (yield from cursor.value(both_sinks(log)))
    if first == '"' and not style.needs_arguments:
        fields.has_arguments = True
        return (yield from read_json_string(cursor, log.take, log.argue))
    if style.needs_arguments:
        log.reject()
    return (yield from cursor.value(log.take))


def both_sinks(log: CallLog) -> Callable[[str], None]:
    """Returns the sink of text that is markup of the block and arguments at once."""

    def sink(text: str) -> None:
        log.take(text)
        log.argue(text)

    return sink


def _read_string(cursor: TextCursor, sink: Callable[[str], None]) -> Reading[str | None]:
    """Reads a JSON string and returns its value; None where there is none, or not a whole or valid one."""
    if (yield from cursor.peek()) != '"':
        return None
    pieces: list[str] = []

    def keep(text: str) -> None:
        sink(text)
        pieces.append(text)

    if not (yield from cursor.value(keep)):
        return None
    try:
        value: Any = decode("".join(pieces))
    except (DecodeError, UnicodeError):
        return None
    return value if isinstance(value, str) else None
