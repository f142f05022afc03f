"""Reads strings that have to be decoded: JSON strings and Python strings.

The decoded text goes on as it becomes certain, in pieces; an escape that means nothing stays as it was written. Two
escaped halves of a surrogate pair are one character, a half alone is U+FFFD.
"""

import re
from dataclasses import dataclass

from tidegate.parsers.text_cursor import Reading, Sink, TextCursor

_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\\": "\\", '"': '"', "/": "/"}
_PYTHON_SIMPLE = {key: value for key, value in _SIMPLE.items() if key != "/"}
_PYTHON_SIMPLE |= {"'": "'", "a": "\a", "v": "\v", "0": "\0", "\n": ""}
_HEX = re.compile(r"[0-9A-Fa-f]")
_CERTAIN = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|([\s\S]))")


@dataclass(frozen=True, slots=True)
class _Syntax:
    """`certain`: text in which every escape is whole and needs nothing that follows."""

    certain: re.Pattern[str]
    simple: dict[str, str]
    num_digits: dict[str, int]

    def decode(self, text: str) -> str:
        """Returns what `text`, matched by `certain`, stands for."""
        return _CERTAIN.sub(lambda found: chr(int(found[1], 16)) if found[1] else self.simple[found[2]], text)


def _syntax(mark: str, simple: dict[str, str], num_digits: dict[str, int]) -> _Syntax:
    escapes = "".join(map(re.escape, simple))
    certain = rf"(?:[^{mark}\\]++|\\[{escapes}]|\\u(?![dD][89a-fA-F])[0-9A-Fa-f]{{4}})*+"
    return _Syntax(re.compile(certain), simple, num_digits)


_JSON = _syntax('"', _SIMPLE, {"u": 4})
_PYTHON = {mark: _syntax(mark, _PYTHON_SIMPLE, {"x": 2, "u": 4, "U": 8}) for mark in ("'", '"')}


def read_json_string(cursor: TextCursor, raw: Sink, decoded: Sink) -> Reading[bool]:
    """Reads a JSON string from its opening quote; returns whether its end was seen."""
    yield from cursor.literal('"', raw)
    return (yield from _read(cursor, '"', _JSON, raw, decoded))


def read_python_string(cursor: TextCursor, raw: Sink, decoded: Sink) -> Reading[bool]:
    """Reads a Python string, in single or double quotes; returns whether its end was seen."""
    mark = yield from cursor.peek()
    yield from cursor.literal(mark, raw)
    return (yield from _read(cursor, mark, _PYTHON[mark], raw, decoded))


def _read(cursor: TextCursor, mark: str, syntax: _Syntax, raw: Sink, decoded: Sink) -> Reading[bool]:
    high = ""

    def certain(text: str) -> None:
        raw(text)
        decoded(syntax.decode(text))

    while True:
        following = yield from cursor.peek()
        if high and following != "\\":
            decoded("\ufffd")
            high = ""
        if not high:
            yield from cursor.run(syntax.certain, certain)
        if (yield from cursor.literal(mark, raw)):
            return True
        if not (yield from cursor.literal("\\", raw)):
            return False
        text = yield from _read_escape(cursor, syntax, raw)
        high = _join_halves(high, text, decoded)


def _join_halves(high: str, text: str, decoded: Sink) -> str:
    """Gives what an escape stands for to `decoded`; `high`: the half before it. Returns a half that must wait."""
    if high:
        if "\udc00" <= text <= "\udfff":
            text = chr(0x10000 + (ord(high) - 0xD800) * 0x400 + ord(text) - 0xDC00)
        else:
            decoded("\ufffd")
    if "\ud800" <= text <= "\udbff":
        return text
    if text:
        decoded("\ufffd" if "\udc00" <= text <= "\udfff" else text)
    return ""


def _read_escape(cursor: TextCursor, syntax: _Syntax, raw: Sink) -> Reading[str]:
    """Reads what follows a backslash; returns what it stands for, which may be half of a surrogate pair."""
    char = yield from cursor.peek()
    if char in syntax.simple:
        yield from cursor.literal(char, raw)
        return syntax.simple[char]
    num_digits = syntax.num_digits.get(char)
    if num_digits is None:
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
