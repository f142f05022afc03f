"""What parsers and choice streams tell writers and assemblers, one choice at a time."""

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


class ReasoningText(msgspec.Struct, frozen=True, tag=True):
    """Text of the model's reasoning."""

    text: str


class ToolCallStarted(msgspec.Struct, frozen=True, tag=True):
    """A tool call whose name is complete."""

    tool_index: int
    call_id: str
    name: str


class ToolCallArguments(msgspec.Struct, frozen=True, tag=True):
    """A fragment of a call's arguments, in the model's own characters."""

    tool_index: int
    fragment: str


class ChoiceFinished(msgspec.Struct, frozen=True, tag=True):
    """The last event of a choice."""

    reason: FinishReason
    match: StopMatch | None = None


ParsedEvent = ContentText | ReasoningText | ToolCallStarted | ToolCallArguments
StreamEvent = ParsedEvent | ChoiceFinished


def merge_events(events: list[StreamEvent]) -> list[StreamEvent]:
    """Returns `events` of one choice with neighbours of one kind joined: the same text in fewer pieces."""
    merged: list[StreamEvent] = []
    for event in events:
        last = merged[-1] if merged else None
        if isinstance(event, ContentText) and isinstance(last, ContentText):
            merged[-1] = ContentText(
                last.text + event.text, last.logprobs + event.logprobs, last.token_ids + event.token_ids
            )
        elif isinstance(event, ReasoningText) and isinstance(last, ReasoningText):
            merged[-1] = ReasoningText(last.text + event.text)
        elif (
            isinstance(event, ToolCallArguments)
            and isinstance(last, ToolCallArguments)
            and event.tool_index == last.tool_index
        ):
            merged[-1] = ToolCallArguments(last.tool_index, last.fragment + event.fragment)
        else:
            merged.append(event)
    return merged
