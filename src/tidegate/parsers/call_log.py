"""What becomes of the text of a possible tool call: a call, or content after all.

While a call is undecided its text is held. Once it is known to be a call of an offered tool the text is markup and
only arguments come out; once it is known not to be one, what was held and all that follows in it is content, byte for
byte. A block may hold several calls, one verdict each; what stands between them goes with the next one.

Readers of formats report here what they read and how they understand it. Does not know formats.
"""

from collections.abc import Callable

from tidegate.inference.event import ContentText, ParsedEvent, ReasoningText, ToolCallArguments, ToolCallStarted
from tidegate.parsers.offered_tools import OfferedTools, ToolSchema
from tidegate.parsers.text_cursor import TextCursor

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
        self._content: list[str] = []
        self._blank: list[str] | None = []
        self._held: list[str] = []
        self._held_arguments: list[str] = []
        self._arguments: list[str] = []
        self._verdict: bool | None = None
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
        """Content; what is blank at the beginning or after a call waits until something else follows."""
        if self._blank is not None:
            if not text.strip(" \t\r\n"):
                self._blank.append(text)
                return
            self._content += self._blank
            self._blank = None
        self._flush_arguments()
        self._content.append(text)

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
        self._held = [*(self._blank or ()), marker]
        self._held_arguments = []
        if self._blank is not None:
            self._blank = []
        self._verdict = None
        self.num_in_block = 0

    def close_block(self) -> None:
        """A block has ended, or the text has inside it."""
        if self._verdict:
            self._end_arguments()
        elif self._verdict is None and not (self.num_in_block and not "".join(self._held).strip(_BETWEEN)):
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
        """Text of the block: held, content, or markup that is dropped, by the verdict."""
        if self._verdict is None:
            self._held.append(text)
        elif not self._verdict:
            self.content(text)

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
        self._verdict, self._has_arguments = True, False
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

    def _release(self) -> None:
        """Held text is content after all; an opening that the budget cut is withheld."""
        held, self._held = self._held, []
        if held and not self._cursor.is_cut_here:
            self.content("".join(held))

    def _flush_content(self) -> None:
        if self._content:
            self._events.append(ContentText("".join(self._content)))
            self._content = []

    def _flush_arguments(self) -> None:
        """Only one of content and arguments is waiting at any time."""
        if self._arguments:
            self._has_arguments = True
            self._events.append(ToolCallArguments(self.num_calls - 1, "".join(self._arguments)))
            self._arguments = []
