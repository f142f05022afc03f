"""A reading position in text that arrives in pieces: what readers of formats are written with.

A reader is a generator. It asks the cursor for the next thing it expects; where the text does not reach that far, the
reader is suspended, and goes on with the next piece. So a reader looks as if the whole text were there, and cannot
tell how it was cut. The unread rest is never longer than the longest marker: whatever is read goes to a sink at once,
and while it does so `position` is where that text begins.

Does not know formats. `num_scanned` counts the characters that were looked at, for the proof that work is linear.
"""

import re
from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

from tidegate.parsers.json_span import JsonSpan
from tidegate.parsers.marker_scanner import MarkerScanner

T = TypeVar("T")
Reading: TypeAlias = Generator[None, None, T]
"""A reader that ends with a T."""
Sink: TypeAlias = Callable[[str], None]

_BLANK = re.compile(r"[ \t\r\n]*")


def ignore(_text: str) -> None:
    """The sink of text that nobody wants."""


class TextCursor:
    """The unread text. After `end` nothing comes any more, and every reader runs to its end."""

    __slots__ = ("_at", "_num_dropped", "_text", "is_cut", "is_over", "num_scanned")

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._num_dropped = 0
        self.is_over = False
        self.is_cut = False
        """Meaningful once the text is over: the token budget ended it."""
        self.num_scanned = 0

    def push(self, text: str) -> None:
        """Appends a piece."""
        self._text = self._text[self._at :] + text
        self._num_dropped += self._at
        self._at = 0

    def end(self, *, is_cut: bool) -> None:
        """Says that no more text comes."""
        self.is_over = True
        self.is_cut = is_cut

    @property
    def position(self) -> int:
        """Characters of the output that have been read."""
        return self._num_dropped + self._at

    @property
    def is_cut_here(self) -> bool:
        """Whether the token budget ended the text and all of it has been read."""
        return self.is_over and self.is_cut and self._at >= len(self._text)

    def shows(self, pattern: re.Pattern[str]) -> bool:
        """Whether what is here already begins with `pattern`; nothing is read and nothing waited for."""
        return pattern.match(self._text, self._at) is not None

    def rest(self, sink: Sink) -> Reading[None]:
        """Reads everything that comes."""
        while True:
            if self._at < len(self._text):
                sink(self._text[self._at :])
                self._at = len(self._text)
            if self.is_over:
                return
            yield

    def until(self, scanner: MarkerScanner, sink: Sink, marker_sink: Sink = ignore) -> Reading[str]:
        """Reads up to and over the next marker; the text before it goes to `sink`. Returns it, "" at the end."""
        while True:
            start = self._at
            free_end, marker = scanner.find(self._text, start, is_over=self.is_over)
            self.num_scanned += free_end - start + len(marker) + 1
            if free_end > start:
                sink(self._text[start:free_end])
            self._at = free_end
            if marker:
                marker_sink(marker)
                self._at += len(marker)
            if marker or self.is_over:
                return marker
            yield

    def one_of(self, scanner: MarkerScanner, sink: Sink, *, is_markup: bool = True) -> Reading[str]:
        """Reads a marker that begins here and gives it to `sink`. Returns it, "" for none.

        `is_markup`: a beginning of a marker that the token budget cut is markup and goes nowhere.
        """
        while True:
            marker = scanner.match(self._text, self._at, is_over=self.is_over)
            self.num_scanned += 1
            if marker is not None:
                break
            yield
        if marker:
            sink(marker)
            self._at += len(marker)
        elif is_markup and self.is_cut and scanner.is_begun(self._text[self._at :]):
            self._at = len(self._text)
        return marker

    def literal(self, text: str, sink: Sink) -> Reading[bool]:
        """Reads exactly `text`, which goes to `sink`; returns whether it was there.

        A beginning of it that the token budget cut is markup and goes nowhere.
        """
        while True:
            have = self._text[self._at : self._at + len(text)]
            self.num_scanned += 1
            if have == text:
                sink(text)
                self._at += len(text)
                return True
            if not text.startswith(have):
                return False
            if self.is_over:
                self._at += len(have) if self.is_cut else 0
                return False
            yield

    def peek(self) -> Reading[str]:
        """Returns the next character without reading it, "" at the end."""
        while self._at >= len(self._text):
            if self.is_over:
                return ""
            yield
        return self._text[self._at]

    def run(self, pattern: re.Pattern[str], sink: Sink) -> Reading[None]:
        """Reads characters as long as `pattern`, a repeated character class, matches them."""
        while True:
            found = pattern.match(self._text, self._at)
            end = self._at if found is None else found.end()
            self.num_scanned += end - self._at + 1
            if end > self._at:
                sink(self._text[self._at : end])
                self._at = end
            if end < len(self._text) or self.is_over:
                return
            yield

    def blank(self, sink: Sink) -> Reading[None]:
        """Reads spaces, tabs and line breaks."""
        yield from self.run(_BLANK, sink)

    def value(self, sink: Sink) -> Reading[bool]:
        """Reads one JSON value, unparsed, which goes to `sink`; returns whether its end was seen."""
        span = JsonSpan()
        while True:
            end = span.scan(self._text, self._at)
            self.num_scanned += end - self._at + 1
            if end > self._at:
                sink(self._text[self._at : end])
                self._at = end
            if span.is_ended or self.is_over:
                return span.is_whole(is_over=self.is_over)
            yield
