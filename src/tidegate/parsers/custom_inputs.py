"""Gives the calls of custom tools their input as plain text.

A model is shown a custom tool as a function with one string, `input`, and so it writes an object with that string. Its
decoded text is the input, as it arrives. Arguments of any other shape are the input as they stand: nothing is lost.
Knows no formats: it reads what another parser has found.
"""

from collections.abc import Callable

from tidegate.inference.event import ParsedEvent, ToolCallArguments, ToolCallEnded, ToolCallStarted
from tidegate.parsers.parser import OutputParser
from tidegate.parsers.string_reading import read_json_string
from tidegate.parsers.text_cursor import Reading, Sink, TextCursor, ignore

INPUT_KEY = "input"


class CustomInputParser:
    """Wraps the parser of one choice. `names`: the custom tools among the offered ones."""

    def __init__(self, inner: OutputParser, names: frozenset[str]) -> None:
        self._inner = inner
        self._names = names
        self._input: _Input | None = None
        self._tool_index = 0

    def feed(self, text: str) -> list[ParsedEvent]:
        return self._read(self._inner.feed(text))

    def finish(self, *, is_cut: bool = False) -> list[ParsedEvent]:
        events = self._read(self._inner.finish(is_cut=is_cut))
        return events + self._end_input(is_cut=is_cut)

    def _read(self, events: list[ParsedEvent]) -> list[ParsedEvent]:
        seen: list[ParsedEvent] = []
        for event in events:
            match event:
                case ToolCallStarted(index, call_id, name):
                    seen += self._end_input()
                    is_custom = name in self._names
                    seen.append(ToolCallStarted(index, call_id, name, is_custom))
                    self._input, self._tool_index = _Input() if is_custom else None, index
                case ToolCallArguments(_, fragment) if self._input is not None:
                    seen += self._fragments(self._input.feed(fragment))
                case ToolCallEnded():
                    seen += self._end_input()
                    seen.append(event)
                case _:
                    seen.append(event)
        return seen

    def _end_input(self, *, is_cut: bool = False) -> list[ParsedEvent]:
        if self._input is None:
            return []
        text = self._input.finish(is_cut=is_cut)
        self._input = None
        return self._fragments(text)

    def _fragments(self, text: str) -> list[ParsedEvent]:
        return [ToolCallArguments(self._tool_index, text, is_custom=True)] if text else []


class _Input:
    """The input of one call."""

    def __init__(self) -> None:
        self._cursor = TextCursor()
        self._pieces: list[str] = []
        self._reading = self._read(self._cursor, self._pieces.append)

    def feed(self, text: str) -> str:
        self._cursor.push(text)
        return self._advance()

    def finish(self, *, is_cut: bool) -> str:
        """Returns what was held back; where the budget cut it, nothing: what was certain is out."""
        self._cursor.end(is_cut=is_cut)
        return "" if is_cut else self._advance()

    def _advance(self) -> str:
        next(self._reading, None)
        text = "".join(self._pieces)
        self._pieces.clear()
        return text

    def _read(self, cursor: TextCursor, show: Callable[[str], None]) -> Reading[None]:
        before: list[str] = []
        if (yield from self._read_head(cursor, before.append)):
            yield from read_json_string(cursor, ignore, show)
            yield from cursor.rest(ignore)
            return
        show("".join(before))
        yield from cursor.rest(show)

    def _read_head(self, cursor: TextCursor, sink: Sink) -> Reading[bool]:
        """Reads up to the string; returns whether it is there."""
        for expected in ("{", f'"{INPUT_KEY}"', ":"):
            yield from cursor.blank(sink)
            if not (yield from cursor.literal(expected, sink)):
                return False
        yield from cursor.blank(sink)
        return (yield from cursor.peek()) == '"'
