"""The port of whatever turns a choice's visible text into events: plain text, reasoning, tool calls."""

from typing import Protocol

from tidegate.inference.event import ParsedEvent


class OutputParser(Protocol):
    """An incremental parser of one choice.

    However the text is cut into pieces, the events are the same after `merge_events`. No character is lost: what is
    not markup comes out as text of some kind. Never raises, whatever the model writes. Work is linear in the text.
    """

    def feed(self, text: str) -> list[ParsedEvent]:
        """Returns what is certain after this piece, in order; no event without content."""
        ...

    def finish(self, *, is_cut: bool = False) -> list[ParsedEvent]:
        """Ends the text: returns what was held back. Called once, last.

        `is_cut`: the token budget ended the text, not the model. Then an opening that has not become a call is
        withheld; at a natural end it is content.
        """
        ...
