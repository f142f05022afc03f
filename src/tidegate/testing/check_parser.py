"""What every `OutputParser` must do, whatever it parses."""

from collections.abc import Callable, Iterable

from tidegate.inference.event import (
    ContentText,
    ParsedEvent,
    ReasoningText,
    StreamEvent,
    ToolCallArguments,
    merge_events,
)
from tidegate.parsers.parser import OutputParser
from tidegate.testing.partitions import partitions, random_partitions

_LONG_TEXT = 400
"""Longer texts are cut at random only: all cuts into two would be quadratic."""


def parse_pieces(parser: OutputParser, pieces: Iterable[str]) -> list[StreamEvent]:
    """Feeds all pieces, finishes, and returns the merged events.

    Raises AssertionError for an event that says nothing.
    """
    events: list[ParsedEvent] = []
    for piece in pieces:
        events += parser.feed(piece)
    events += parser.finish()
    for event in events:
        if _is_empty(event):
            raise AssertionError(f"an event without content: {event!r}")
    return merge_events(list(events))


def check_parser(make_parser: Callable[[], OutputParser], texts: Iterable[str]) -> None:
    """Raises AssertionError unless every cut of every text gives the same events.

    `make_parser` must give parsers that mint the same call ids in the same order.
    """
    for text in texts:
        expected = parse_pieces(make_parser(), [text])
        cuts = partitions(text) if len(text) <= _LONG_TEXT else random_partitions(text)
        for pieces in cuts:
            events = parse_pieces(make_parser(), pieces)
            if events != expected:
                raise AssertionError(f"cut as {pieces!r} the events are {events!r}, in one piece {expected!r}")


def _is_empty(event: ParsedEvent) -> bool:
    match event:
        case ContentText(text) | ReasoningText(text):
            return not text
        case ToolCallArguments(_, fragment):
            return not fragment
        case _:
            return False
