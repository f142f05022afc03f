"""Reads one value of literals, Python's or Gemma's, and writes it as JSON while it arrives.

Strings are decoded and quoted again, words and numbers become JSON's, a comma before a closing bracket goes. Nesting
costs a stack, no recursion. What cannot be read ends the value, which is then closed as JSON.
"""

import re

from tidegate.parsers.json_text import escape, is_number, quote
from tidegate.parsers.marker_scanner import MarkerScanner
from tidegate.parsers.string_reading import read_python_string
from tidegate.parsers.text_cursor import Reading, Sink, TextCursor

_PYTHON_WORD = re.compile(r"[\w.+-]*")
_BRACE_WORD = re.compile(r"[^,:{}\[\]<\r\n]*")
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_PAIRS = {"[": "]", "(": "]", "{": "}"}


class LiteralReader:
    """`text_mark`: what stands around strings; empty for Python's strings."""

    def __init__(self, text_mark: str = "") -> None:
        self._mark = MarkerScanner(text_mark) if text_mark else None
        self._word = _BRACE_WORD if text_mark else _PYTHON_WORD

    def read(self, cursor: TextCursor, raw: Sink, out: Sink) -> Reading[bool]:
        """Reads one value; what is read goes to `raw`, its JSON to `out`. Returns whether it was whole.

        Where the budget cut the text the JSON is cut as well; otherwise it is always complete.
        """
        writing = _Writing(out)
        while True:
            yield from cursor.blank(raw)
            char = yield from cursor.peek()
            if not char or not (yield from self._step(cursor, raw, writing, char)):
                break
            if writing.is_done:
                return True
        if not cursor.is_cut or not cursor.is_over:
            writing.close_all()
        return False

    def _step(self, cursor: TextCursor, raw: Sink, writing: "_Writing", char: str) -> Reading[bool]:
        """Reads one token; returns whether it could stand here."""
        if char in "]})" or char in ",:":
            if not (writing.end(char) if char in "]})" else writing.mark(char)):
                return False
            yield from cursor.literal(char, raw)
            return True
        if not writing.can_begin:
            return False
        if char in _PAIRS:
            if not writing.begin(char):
                return False
            yield from cursor.literal(char, raw)
            return True
        return (yield from self._read_scalar(cursor, raw, writing, char))

    def _read_scalar(self, cursor: TextCursor, raw: Sink, writing: "_Writing", char: str) -> Reading[bool]:
        def sink(text: str) -> None:
            writing.out(escape(text))

        def both(text: str) -> None:
            raw(text)
            sink(text)

        if self._mark is not None and (yield from cursor.one_of(self._mark, raw)):
            writing.open_text()
            is_whole = bool((yield from cursor.until(self._mark, both, raw)))
        elif self._mark is None and char in "\"'":
            writing.open_text()
            is_whole = yield from read_python_string(cursor, raw, sink)
        else:
            return (yield from self._read_word(cursor, raw, writing))
        if is_whole or not cursor.is_cut:
            writing.close_text()
        return is_whole

    def _read_word(self, cursor: TextCursor, raw: Sink, writing: "_Writing") -> Reading[bool]:
        pieces: list[str] = []

        def keep(text: str) -> None:
            raw(text)
            pieces.append(text)

        yield from cursor.run(self._word, keep)
        word = "".join(pieces).strip(" \t")
        if not word:
            return False
        if cursor.is_cut and not (yield from cursor.peek()):
            return False
        writing.word(word)
        return True


class _Writing:
    """The JSON written so far: which brackets are open, and what may come next."""

    def __init__(self, out: Sink) -> None:
        self.out = out
        self._stack: list[str] = []
        self._wants_key = False
        self._wants_value = True
        self._comma = ""
        self._is_empty = False

    @property
    def is_done(self) -> bool:
        return not self._stack and not self._wants_value

    @property
    def can_begin(self) -> bool:
        """Whether a key or a value may begin here."""
        return self._wants_key or self._wants_value

    def begin(self, char: str) -> bool:
        if self._wants_key:
            return False
        self._lead()
        self._stack.append(_PAIRS[char])
        self.out("[" if _PAIRS[char] == "]" else "{")
        self._wants_key, self._wants_value = char == "{", char != "{"
        self._is_empty = True
        return True

    def end(self, char: str) -> bool:
        closing = "]" if char == ")" else char
        if not self._stack or self._stack[-1] != closing or self._comma == ":":
            return False
        if self.can_begin and not (self._comma or self._is_empty):
            return False
        self._comma = ""
        # An empty mapping ends where it could have had a key.
        self._wants_key = False
        self.out(self._stack.pop())
        self._close_value()
        return True

    def mark(self, char: str) -> bool:
        if char == ":":
            if self._wants_key or self._wants_value or not self._stack or self._stack[-1] != "}" or self._comma != ":":
                return False
            self.out(": ")
            self._comma = ""
            self._wants_value = True
            self._is_empty = False
            return True
        if not self._stack or self.can_begin or self._comma == ":":
            return False
        self._comma = ", "
        self._wants_key, self._wants_value = self._stack[-1] == "}", self._stack[-1] == "]"
        return True

    def open_text(self) -> None:
        self._lead()
        self.out('"')

    def close_text(self) -> None:
        self.out('"')
        self._close_value()

    def word(self, word: str) -> None:
        self._lead()
        self.out(quote(word) if self._wants_key else _word_to_json(word))
        self._close_value()

    def close_all(self) -> None:
        """Makes what was written one whole JSON value."""
        if self._comma == ":":
            self.out(": null")
        elif self._wants_value and not self._comma and not self._is_empty:
            self.out("null")
        for closing in reversed(self._stack):
            self.out(closing)
        self._stack.clear()

    def _lead(self) -> None:
        self.out(self._comma)
        self._comma = ""
        self._is_empty = False

    def _close_value(self) -> None:
        if self._wants_key:
            self._comma = ":"
        self._is_empty = False
        self._wants_key = self._wants_value = False


def _word_to_json(word: str) -> str:
    """Returns a bare word as JSON: Python's constants and numbers as JSON's, anything else as a string."""
    if word in _WORDS:
        return _WORDS[word]
    plain = word.replace("_", "").removeprefix("+")
    if is_number(plain):
        return plain
    if plain.startswith((".", "-.")) and is_number(plain.replace(".", "0.", 1)):
        return plain.replace(".", "0.", 1)
    if plain.endswith(".") and is_number(plain[:-1]):
        return plain[:-1] + ".0"
    if plain[:2].lower() in ("0x", "0o", "0b") and len(plain) <= 32:
        try:
            return str(int(plain, 0))
        except ValueError:
            pass
    return quote(word)
