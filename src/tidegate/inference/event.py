"""What parsers and choice streams tell writers and assemblers, one choice at a time."""

from typing import TypeVar

import msgspec

from tidegate.inference.finish import FinishReason, StopMatch


class LogprobEntry(msgspec.Struct, frozen=True, gc=False):
    """A token's log-probability with the token's own text and bytes. `top`: (text, logprob, bytes), best first."""

    token: str
    logprob: float | None
    token_bytes: bytes
    top: tuple[tuple[str, float, bytes], ...] = ()
    text_offset: int = 0
    """Characters before this token's text, from the start of prompt and completion together."""


class ContentText(msgspec.Struct, frozen=True, tag=True):
    """Visible text, with the log-probabilities that travel with it."""

    text: str
    logprobs: tuple[LogprobEntry, ...] = ()
    token_ids: tuple[int, ...] = ()
    """Filled when the caller asked for token ids."""
    num_skipped: int = 0
    """From a parser: characters of the output between this text and the content before it. 0 beyond the choice."""


class ReasoningText(msgspec.Struct, frozen=True, tag=True):
    """Text of the model's reasoning."""

    text: str


class ToolCallStarted(msgspec.Struct, frozen=True, tag=True):
    """A tool call whose name is complete."""

    tool_index: int
    call_id: str
    name: str
    is_custom: bool = False
    """A custom tool: what follows is its input, as plain text."""


class ToolCallArguments(msgspec.Struct, frozen=True, tag=True):
    """A fragment of a call's arguments, in the model's own characters; or of a custom tool's input."""

    tool_index: int
    fragment: str
    is_custom: bool = False


class ToolCallEnded(msgspec.Struct, frozen=True, tag=True):
    """A call is complete: its arguments have come to their end. Parsers tell the choice; beyond it nobody is told."""

    tool_index: int


class ChoiceFinished(msgspec.Struct, frozen=True, tag=True):
    """The last event of a choice."""

    reason: FinishReason
    match: StopMatch | None = None


class PromptVector(msgspec.Struct, frozen=True, tag=True, gc=False):
    """What a prompt that was only read was pooled to: little-endian 32-bit floats, all finite. The last event."""

    numbers: bytes


class PromptLikelihood(msgspec.Struct, frozen=True, tag=True, gc=False):
    """The log-probability of a prompt's last tokens, given those before. The last event."""

    logprob: float


ParsedEvent = ContentText | ReasoningText | ToolCallStarted | ToolCallArguments | ToolCallEnded
StreamEvent = (
    ContentText | ReasoningText | ToolCallStarted | ToolCallArguments | ChoiceFinished | PromptVector | PromptLikelihood
)
Event = TypeVar("Event", ParsedEvent, StreamEvent)


def merge_events(events: list[Event]) -> list[Event]:
    """Returns `events` of one choice with neighbours of one kind joined: the same text in fewer pieces."""
    merged: list[Event] = []
    for event in events:
        last = merged[-1] if merged else None
        if isinstance(event, ContentText) and isinstance(last, ContentText) and not event.num_skipped:
            merged[-1] = ContentText(
                last.text + event.text,
                last.logprobs + event.logprobs,
                last.token_ids + event.token_ids,
                last.num_skipped,
            )
        elif isinstance(event, ReasoningText) and isinstance(last, ReasoningText):
            merged[-1] = ReasoningText(last.text + event.text)
        elif (
            isinstance(event, ToolCallArguments)
            and isinstance(last, ToolCallArguments)
            and event.tool_index == last.tool_index
        ):
            merged[-1] = ToolCallArguments(last.tool_index, last.fragment + event.fragment, last.is_custom)
        else:
            merged.append(event)
    return merged
