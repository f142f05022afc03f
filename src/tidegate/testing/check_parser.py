"""What every `OutputParser` must do, whatever it parses."""

from collections.abc import Callable, Iterable

from tidegate.inference.event import (
    ContentText,
    ParsedEvent,
    ReasoningText,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
    merge_events,
)
from tidegate.parsers.parser import OutputParser
from tidegate.testing.partitions import partitions, random_partitions

_LONG_TEXT = 400
"""Longer texts are cut at random only: all cuts into two would be quadratic."""


def parse_pieces(parser: OutputParser, pieces: Iterable[str], *, is_cut: bool = False) -> list[ParsedEvent]:
    """Feeds all pieces, finishes, and returns the merged events. `is_cut`: as if the token budget had ended the text.

    Raises AssertionError for an event that says nothing, for a call that does not keep its order, and for content that
    is not the output's own text at the place that it says.
    """
    events: list[ParsedEvent] = []
    output = ""
    for piece in pieces:
        events += parser.feed(piece)
        output += piece
    events += parser.finish(is_cut=is_cut)
    for event in events:
        if _is_empty(event):
            raise AssertionError(f"an event without content: {event!r}")
    _check_calls(events)
    _check_places(events, output)
    return merge_events(events)


def check_parser(make_parser: Callable[[], OutputParser], texts: Iterable[str]) -> None:
    """Raises AssertionError unless every cut of every text gives the same events.

    Both for a text that the model ended and for one that the token budget cut. `make_parser` must give parsers that
    mint the same call ids in the same order.
    """
    for text in texts:
        for is_cut in (False, True):
            expected = parse_pieces(make_parser(), [text], is_cut=is_cut)
            cuts = partitions(text) if len(text) <= _LONG_TEXT else random_partitions(text)
            for pieces in cuts:
                events = parse_pieces(make_parser(), pieces, is_cut=is_cut)
                if events != expected:
                    raise AssertionError(f"cut as {pieces!r} the events are {events!r}, in one piece {expected!r}")


def _check_places(events: list[ParsedEvent], output: str) -> None:
    at = 0
    for event in events:
        if isinstance(event, ContentText):
            at += event.num_skipped
            if not output.startswith(event.text, at) or event.num_skipped < 0:
                raise AssertionError(f"not at character {at} of the output: {event!r}")
            at += len(event.text)


def _check_calls(events: list[ParsedEvent]) -> None:
    """Calls are numbered from 0, start once, and only the last one started gets arguments; ids are distinct."""
    ids: list[str] = []
    for event in events:
        match event:
            case ToolCallStarted(index, call_id, name):
                if index != len(ids) or not name or not call_id or call_id in ids:
                    raise AssertionError(f"not the start of call {len(ids)} with a new id: {event!r}")
                ids.append(call_id)
            case ToolCallArguments(index, _) | ToolCallEnded(index):
                if index != len(ids) - 1:
                    raise AssertionError(f"arguments of a call that is not the last: {event!r}")
            case _:
                pass


def _is_empty(event: ParsedEvent) -> bool:
    match event:
        case ContentText(text) | ReasoningText(text):
            return not text
        case ToolCallArguments(_, fragment):
            return not fragment
        case _:
            return False
