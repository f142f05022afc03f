"""Takes the model's reasoning out of the text, and gives the rest to an inner parser.

Decides by markers: reasoning begins with the output's first characters, or in the prompt; the first closing marker
ends it, later ones are content; unclosed reasoning is all reasoning, whatever markup it contains. Line breaks right
after the closing marker are dropped. Markers are never shown. Does not know tools.
"""

import re

from msgspec.structs import replace

from tidegate.inference.event import ContentText, ParsedEvent, ReasoningText
from tidegate.parsers.marker_scanner import MarkerScanner
from tidegate.parsers.parser import OutputParser
from tidegate.parsers.text_cursor import Reading, TextCursor, ignore
from tidegate.parsers.tool_format import ReasoningMarkers

_LINE_BREAKS = re.compile(r"[\r\n]*")


class ReasoningParser:
    """Parses one choice. `is_open`: the prompt ended inside reasoning; None: as the family's templates usually do."""

    def __init__(self, markers: ReasoningMarkers, inner: OutputParser, *, is_open: bool | None = None) -> None:
        self._opens = MarkerScanner(*markers.opens)
        self._closes = MarkerScanner(*markers.closes)
        self._inner = inner
        self._is_open = markers.is_open if is_open is None else is_open
        self._cursor = TextCursor()
        self._outside_at: int | None = None
        self._num_ahead = 0
        """Characters before the inner parser's text that no content event has told of yet."""
        self._events: list[ParsedEvent] = []
        self._reading = self._read(self._cursor)

    @property
    def num_scanned(self) -> int:
        """Characters looked at so far, without the inner parser's."""
        return self._cursor.num_scanned

    def feed(self, text: str) -> list[ParsedEvent]:
        if text:
            self._cursor.push(text)
            next(self._reading, None)
        return self._drain()

    def finish(self, *, is_cut: bool = False) -> list[ParsedEvent]:
        self._cursor.end(is_cut=is_cut)
        next(self._reading, None)
        self._events += self._placed(self._inner.finish(is_cut=is_cut))
        return self._drain()

    def _read(self, cursor: TextCursor) -> Reading[None]:
        blank: list[str] = []
        yield from cursor.blank(blank.append)
        is_marked = bool((yield from cursor.one_of(self._opens, ignore, is_markup=False)))
        if not is_marked:
            self._outside("".join(blank), at=0) if not self._is_open else self._inside("".join(blank))
        if (is_marked or self._is_open) and (yield from cursor.until(self._closes, self._inside)):
            yield from cursor.run(_LINE_BREAKS, ignore)
        yield from cursor.rest(self._outside)

    def _inside(self, text: str) -> None:
        if text:
            self._events.append(ReasoningText(text))

    def _outside(self, text: str, at: int | None = None) -> None:
        if self._outside_at is None:
            self._outside_at = self._num_ahead = self._cursor.position if at is None else at
        self._events += self._placed(self._inner.feed(text))

    def _placed(self, events: list[ParsedEvent]) -> list[ParsedEvent]:
        """Returns the inner parser's events as seen from here: its text begins behind the reasoning."""
        if not self._num_ahead:
            return events
        for i, event in enumerate(events):
            if isinstance(event, ContentText):
                events[i] = replace(event, num_skipped=event.num_skipped + self._num_ahead)
                self._num_ahead = 0
                break
        return events

    def _drain(self) -> list[ParsedEvent]:
        events, self._events = self._events, []
        return events
