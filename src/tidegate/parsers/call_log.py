"""What becomes of the text of a possible tool call: a call, or content after all.

While a call is undecided its text is held. Once it is known to be a call of an offered tool the text is markup and
only arguments come out; once it is known not to be one, what was held and all that follows in it is content, byte for
byte. A block may hold several calls, one verdict each; what stands between them goes with the next one.

Readers of formats report here what they read and how they understand it. Does not know formats.
"""

from collections.abc import Callable
from typing import TypeAlias

from tidegate.inference.event import (
    ContentText,
    ParsedEvent,
    ReasoningText,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
)
from tidegate.parsers.json_span import JsonSpan
from tidegate.parsers.offered_tools import OfferedTools, ToolSchema
from tidegate.parsers.text_cursor import TextCursor

_Piece: TypeAlias = tuple[int, str]
"""Text of the output, and where in it the text begins."""
_BETWEEN = " \t\r\n,;]"
"""What may be left of a block after a call without being worth showing."""


class CallLog:
    """Collects the events of one choice.

    `mint_id` gives each call without an id of its own a new one. `cursor` says whether the budget ended the text.
    """

    def __init__(self, tools: OfferedTools, mint_id: Callable[[], str], cursor: TextCursor) -> None:
        self._cursor = cursor
        self._tools = tools
        self._mint_id = mint_id
        self._events: list[ParsedEvent] = []
        self._content: list[_Piece] = []
        self._content_end = 0
        self._blank: list[_Piece] | None = []
        self._held: list[_Piece] = []
        self._held_arguments: list[str] = []
        self._arguments: list[str] = []
        self._verdict: bool | None = None
        self._span = JsonSpan()
        self._has_arguments = False
        self._ids: set[str] = set()
        self.num_calls = 0
        self.num_in_block = 0
        """Calls of the block that is being read."""

    @property
    def is_call(self) -> bool | None:
        """Whether what is being read is a call; None while undecided."""
        return self._verdict

    def drain(self) -> list[ParsedEvent]:
        """Returns the events since the last time."""
        self._flush_content()
        self._flush_arguments()
        events, self._events = self._events, []
        return events

    # Text outside blocks.

    def content(self, text: str) -> None:
        """Content that is just being read."""
        self._show([(self._cursor.position, text)])

    def content_marker(self, marker: str) -> None:
        """Content that has just been read."""
        self._show([(self._cursor.position - len(marker), marker)])

    def _show(self, pieces: list[_Piece]) -> None:
        """Content; what is blank at the beginning or after a call waits until something else follows."""
        if self._blank is not None:
            if not any(text.strip(" \t\r\n") for _, text in pieces):
                self._blank += pieces
                return
            self._content += self._blank
            self._blank = None
        self._flush_arguments()
        self._content += pieces

    def reasoning(self, text: str) -> None:
        """Text of the model's reasoning."""
        if text:
            self._flush_content()
            self._flush_arguments()
            self._events.append(ReasoningText(text))

    def finish(self) -> None:
        """Ends the text outside blocks: an output that is nothing but blanks is content."""
        if self._blank is not None and not self.num_calls:
            self._content += self._blank
        self._blank = None

    # Blocks.

    def open_block(self, marker: str) -> None:
        """A block begins; its `marker` and the blanks before it are held."""
        self._held = [*(self._blank or ()), (self._cursor.position - len(marker), marker)]
        self._held_arguments = []
        if self._blank is not None:
            self._blank = []
        self._verdict = None
        self.num_in_block = 0

    def close_block(self) -> None:
        """A block has ended, or the text has inside it."""
        if self._verdict:
            self._end_arguments()
        elif self._verdict is None and not (self.num_in_block and not _text_of(self._held).strip(_BETWEEN)):
            self._release()
        self._held = []
        if self.num_in_block:
            self._blank = self._blank or []
        self._verdict = None

    def next_call(self) -> None:
        """The call that was being read is complete; another may follow in the block."""
        if self._verdict:
            self._end_arguments()
        self._verdict = None
        self._held_arguments = []

    def take(self, text: str) -> None:
        """Text of the block that is just being read: held, content, or markup that is dropped, by the verdict."""
        self._take(self._cursor.position, text)

    def take_marker(self, marker: str) -> None:
        """As `take`, for what has just been read."""
        self._take(self._cursor.position - len(marker), marker)

    def _take(self, at: int, text: str) -> None:
        if self._verdict is None:
            self._held.append((at, text))
        elif not self._verdict:
            self._show([(at, text)])

    def argue(self, fragment: str) -> None:
        """A fragment of the arguments, as JSON text."""
        if not fragment:
            return
        if self._verdict is None:
            self._held_arguments.append(fragment)
        elif self._verdict:
            self._arguments.append(fragment)

    def schema_of(self, name: str) -> ToolSchema | None:
        """Returns what is known of an offered tool's arguments."""
        return self._tools.get(name)

    def offers(self, name: str) -> bool:
        """Whether `name` is an offered tool."""
        return name in self._tools

    def decide(self, name: str, call_id: str | None = None) -> bool:
        """The call's name is complete and nothing else can make it content: starts it if `name` is offered."""
        if self._verdict is not None:
            return self._verdict
        if name not in self._tools:
            self.reject()
            return False
        if not call_id or call_id in self._ids:
            call_id = self._mint_id()
        self._ids.add(call_id)
        self._flush_content()
        self._flush_arguments()
        self._events.append(ToolCallStarted(self.num_calls, call_id, name))
        self._held = []
        self._blank = []
        self._verdict, self._has_arguments, self._span = True, False, JsonSpan()
        self.num_calls += 1
        self.num_in_block += 1
        self.argue("".join(self._held_arguments))
        self._held_arguments = []
        return True

    def reject(self) -> None:
        """What is being read is no call, unless it has been started."""
        if self._verdict is None:
            self._verdict = False
            self._held_arguments = []
            self._release()

    def drop_held(self) -> None:
        """What was held is markup around text that is no call."""
        self._held = []

    def _end_arguments(self) -> None:
        self._flush_arguments()
        if not self._has_arguments and not self._cursor.is_cut_here:
            self.argue("{}")
            self._flush_arguments()
        if self._has_arguments and self._span.is_whole(is_over=True):
            self._events.append(ToolCallEnded(self.num_calls - 1))

    def _release(self) -> None:
        """Held text is content after all; an opening that the budget cut is withheld."""
        held, self._held = self._held, []
        if held and not self._cursor.is_cut_here:
            self._show(held)

    def _flush_content(self) -> None:
        """Content in one piece for each stretch of the output without a gap."""
        pieces, self._content = self._content, []
        at = 0
        while at < len(pieces):
            start, end = pieces[at][0], pieces[at][0]
            first = at
            while at < len(pieces) and pieces[at][0] == end:
                end += len(pieces[at][1])
                at += 1
            if end > start:
                text = _text_of(pieces[first:at])
                self._events.append(ContentText(text, num_skipped=start - self._content_end))
                self._content_end = end

    def _flush_arguments(self) -> None:
        """Only one of content and arguments is waiting at any time."""
        if self._arguments:
            fragment = "".join(self._arguments)
            # Arguments that were a JSON string themselves may begin with blanks.
            start = 0 if self._has_arguments else len(fragment) - len(fragment.lstrip())
            if not self._span.is_ended:
                self._span.scan(fragment, start)
            self._has_arguments = True
            self._events.append(ToolCallArguments(self.num_calls - 1, fragment))
            self._arguments = []


def _text_of(pieces: list[_Piece]) -> str:
    return "".join(text for _, text in pieces)
