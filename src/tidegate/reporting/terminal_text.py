"""Text for a terminal: lines that are too wide go on below, further in, where the width is known. Pure."""

import textwrap
from collections.abc import Iterable, Iterator

_LEAST = 40
"""A narrower terminal breaks lines as it likes."""


def fold(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Yields the lines, none wider than `width` where words allow it; None: as they are. What goes on stands two
    places further in than its line begins.
    """
    for line in lines:
        if width is None or width < _LEAST or len(line) <= width:
            yield line
            continue
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        yield from textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
