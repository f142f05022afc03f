"""Reads strings that have to be decoded: JSON strings, Python strings, and text between marks.

The decoded text goes on as it becomes certain, in pieces; an escape that means nothing stays as it was written.
"""

import re

from tidegate.parsers.marker_scanner import MarkerScanner
from tidegate.parsers.text_cursor import Reading, Sink, TextCursor

_JSON_STOPS = MarkerScanner('"', "\\")
_PYTHON_STOPS = {mark: MarkerScanner(mark, "\\") for mark in ("'", '"')}
_HEX = re.compile(r"[0-9A-Fa-f]")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\\": "\\", '"': '"', "/": "/"}
_PYTHON_SIMPLE = {**_SIMPLE, "'": "'", "a": "\a", "v": "\v", "0": "\0", "\n": ""}
del _PYTHON_SIMPLE["/"]
_NUM_DIGITS = {"x": 2, "u": 4, "U": 8}


def read_json_string(cursor: TextCursor, raw: Sink, decoded: Sink) -> Reading[bool]:
    """Reads a JSON string from its opening quote; returns whether its end was seen."""
    yield from cursor.literal('"', raw)
    return (yield from _read(cursor, _JSON_STOPS, _SIMPLE, raw, decoded))


def read_python_string(cursor: TextCursor, raw: Sink, decoded: Sink) -> Reading[bool]:
    """Reads a Python string, in single or double quotes; returns whether its end was seen."""
    mark = yield from cursor.peek()
    yield from cursor.literal(mark, raw)
    return (yield from _read(cursor, _PYTHON_STOPS[mark], _PYTHON_SIMPLE, raw, decoded))


def _read(cursor: TextCursor, stops: MarkerScanner, simple: dict[str, str], raw: Sink, decoded: Sink) -> Reading[bool]:
    high = ""

    def both(text: str) -> None:
        raw(text)
        decoded(text)

    while True:
        following = yield from cursor.peek()
        if high and following != "\\":
            decoded("\ufffd")
            high = ""
        stop = yield from cursor.until(stops, both)
        if not stop:
            return False
        raw(stop)
        if stop != "\\":
            return True
        text = yield from _read_escape(cursor, simple, raw)
        if high:
            if "\udc00" <= text <= "\udfff":
                text = chr(0x10000 + (ord(high) - 0xD800) * 0x400 + ord(text) - 0xDC00)
            else:
                decoded("\ufffd")
            high = ""
        if "\ud800" <= text <= "\udbff":
            high = text
        elif text:
            decoded("\ufffd" if "\udc00" <= text <= "\udfff" else text)


def _read_escape(cursor: TextCursor, simple: dict[str, str], raw: Sink) -> Reading[str]:
    """Reads what follows a backslash; returns what it stands for, one half of a surrogate pair included."""
    char = yield from cursor.peek()
    if not char:
        return "\\"
    if char in simple:
        yield from cursor.literal(char, raw)
        return simple[char]
    num_digits = _NUM_DIGITS.get(char, 0)
    if not num_digits or (char != "u" and "'" not in simple):
        return "\\"
    yield from cursor.literal(char, raw)
    digits = ""
    while len(digits) < num_digits:
        digit = yield from cursor.peek()
        if not digit or _HEX.match(digit) is None:
            return f"\\{char}{digits}"
        yield from cursor.literal(digit, raw)
        digits += digit
    number = int(digits, 16)
    return chr(number) if number < 0x110000 else f"\\{char}{digits}"
