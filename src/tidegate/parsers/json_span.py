"""Where a JSON value ends, found without parsing it.

Follows strings and the depth of brackets, so a marker inside a string is data. Lenient: what a model writes badly is
passed on as it is. A `<` outside strings is no JSON and ends the value, broken: there the markup of a format begins.
Does not know whether the value is valid, see `json_text`.
"""

import re

_OUTSIDE = re.compile(r'[\[{]+|[\]}]+|"|<')
_INSIDE = re.compile(r'"|(?:\\[\s\S])+|\\\Z')
_SCALAR_END = re.compile(r'[\s,:\[\]{}<"]')


class JsonSpan:
    """One value, which begins with the first character that is scanned: no blank before it."""

    __slots__ = ("_depth", "_is_broken", "_is_escaped", "_is_inside", "_is_scalar", "is_ended")

    def __init__(self) -> None:
        self._depth = 0
        self._is_inside = False
        self._is_escaped = False
        self._is_scalar: bool | None = None
        self._is_broken = False
        self.is_ended = False

    def is_whole(self, *, is_over: bool) -> bool:
        """Whether the value has reached its end; a number or word does so with the text."""
        if self._is_scalar:
            return self.is_ended or is_over
        return self.is_ended and not self._is_broken

    def scan(self, text: str, at: int) -> int:
        """Returns the end of what belongs to the value; `is_ended` says whether that is its end."""
        if at < len(text) and self._is_scalar is None:
            self._is_scalar = text[at] not in '"[{'
        if self._is_scalar:
            found = _SCALAR_END.search(text, at)
            self.is_ended = found is not None
            return len(text) if found is None else found.start()
        while at < len(text) and not self.is_ended:
            if self._is_escaped:
                self._is_escaped = False
                at += 1
            elif self._is_inside:
                at = self._scan_string(text, at)
            else:
                at = self._scan_structure(text, at)
        return at

    def _scan_string(self, text: str, at: int) -> int:
        found = _INSIDE.search(text, at)
        if found is None:
            return len(text)
        if found.group() == '"':
            self._is_inside = False
            self.is_ended = self._depth == 0
        else:
            self._is_escaped = found.end() - found.start() == 1
        return found.end()

    def _scan_structure(self, text: str, at: int) -> int:
        found = _OUTSIDE.search(text, at)
        if found is None:
            return len(text)
        first, length = text[found.start()], found.end() - found.start()
        if first == '"':
            self._is_inside = True
        elif first == "<":
            self.is_ended = self._is_broken = True
            return found.start()
        elif first in "[{":
            self._depth += length
        elif length >= self._depth:
            self.is_ended = True
            return found.start() + self._depth
        else:
            self._depth -= length
        return found.end()
