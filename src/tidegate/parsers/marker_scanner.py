"""Where the next marker of a set begins, in text of which more may come.

Decides by the leftmost marker, and of several that begin at one place by the longest, as if the whole text were there:
text that could still be the beginning of a marker is neither released nor matched by a shorter one. Does not know what
a marker means, nor who holds the text.
"""

import re


class MarkerScanner:
    """Searches for any of `markers`, which are distinct and not empty."""

    __slots__ = ("_first", "_longest", "_pattern", "_prefixes", "markers")

    def __init__(self, *markers: str) -> None:
        self.markers = markers
        by_length = sorted(set(markers), key=lambda marker: (-len(marker), marker))
        self._pattern = re.compile("|".join(map(re.escape, by_length)) or r"(?!)")
        firsts = sorted({re.escape(marker[0]) for marker in markers})
        self._first = re.compile("|".join(firsts) or r"(?!)")
        self._prefixes = frozenset(marker[:length] for marker in markers for length in range(1, len(marker)))
        self._longest = max(map(len, markers), default=0)

    def find(self, text: str, start: int, *, is_over: bool) -> tuple[int, str]:
        """Returns the end of what is certainly no marker, from `start`, and the marker that begins there.

        The marker is empty when the text must go on first; after the last text, when there is none.
        """
        found = self._pattern.search(text, start)
        free_end = len(text) if found is None else found.start()
        if not is_over:
            open_at = self._open_end(text, start)
            if open_at is not None and open_at <= free_end:
                return open_at, ""
        return (free_end, "") if found is None else (free_end, found.group())

    def match(self, text: str, start: int, *, is_over: bool) -> str | None:
        """Returns the marker that begins exactly at `start`, empty for none, None when only more text can tell."""
        rest = text[start : start + self._longest]
        if not is_over and (not rest or rest in self._prefixes):
            return None
        found = self._pattern.match(text, start)
        return "" if found is None else found.group()

    def is_begun(self, text: str) -> bool:
        """Whether `text` is the beginning of a marker, and not the whole of it."""
        return text in self._prefixes

    def is_mostly(self, text: str) -> bool:
        """Whether `text` is the beginning of a marker, and more than half of it."""
        return text in self._prefixes and any(
            marker.startswith(text) and 2 * len(text) > len(marker) for marker in self.markers
        )

    def _open_end(self, text: str, start: int) -> int | None:
        """Returns where the longest end of the text begins that is the beginning of a marker."""
        at = max(start, len(text) - self._longest + 1)
        while True:
            found = self._first.search(text, at)
            if found is None:
                return None
            if text[found.start() :] in self._prefixes:
                return found.start()
            at = found.start() + 1
