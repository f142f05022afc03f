"""One choice from tokens to events: detokenise, parse, match stop strings, align log-probabilities.

Decides what of the model's output is visible and when the choice ends on the text side (CONTRACT.md sections 5 to 7).
Works token by token inside a delta, so that the grouping of tokens into steps never shows. Does not know the wire,
the engine's epochs, or other choices.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tidegate.inference.event import (
    ChoiceFinished,
    ContentText,
    LogprobEntry,
    ParsedEvent,
    ReasoningText,
    StreamEvent,
    ToolCallEnded,
)
from tidegate.inference.finish import EngineFinish, FinishReason, StopMatch
from tidegate.inference.output import TokenDelta
from tidegate.parsers.parser import OutputParser
from tidegate.parsers.plain import PlainParser
from tidegate.serving.logprob_aligner import LogprobAligner
from tidegate.text.detokenizer import Detokenizer
from tidegate.text.stop_matcher import StopMatcher
from tidegate.text.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class ChoicePlan:
    """How to read the output of one request's choices. `text_start`: characters before the completion."""

    vocabulary: Vocabulary
    stop_strings: tuple[str, ...] = ()
    include_stop: bool = False
    min_tokens: int = 0
    skip_special: bool = True
    want_logprobs: bool = False
    want_token_ids: bool = False
    text_start: int = 0
    eos_token_ids: frozenset[int] = frozenset()
    visible_ids: frozenset[int] = frozenset()
    """Control tokens whose text the parser needs to see, whatever `skip_special` says: its own markers."""
    make_parser: Callable[[], OutputParser] = PlainParser
    """Makes each choice its own parser: what in its text is content, reasoning or a tool call."""
    allows_many_calls: bool = True
    """Otherwise the choice ends with its first complete call."""
    calls_finish: FinishReason = FinishReason.TOOL_CALLS
    """The reason of a choice that the model ended after at least one complete call."""
    text_memo: dict[int, str] | None = None
    """Shared by the detokenizers of one vocabulary and one `skip_special`."""


class ChoiceStream:
    """Feeds on the deltas of one choice; after the finishing event it ignores whatever still comes."""

    def __init__(self, plan: ChoicePlan) -> None:
        self._plan = plan
        self._parser = plan.make_parser()
        self._detokenizer = Detokenizer(
            plan.vocabulary, skip_special=plan.skip_special, memo=plan.text_memo, shown=plan.visible_ids
        )
        self._matcher = StopMatcher(plan.stop_strings, include_match=plan.include_stop)
        self._aligner = LogprobAligner(plan.vocabulary, plan.text_start) if plan.want_logprobs else None
        # Nothing can hold text back or add to it: the common step of a stream takes a short cut.
        self._is_plain = not (plan.stop_strings or plan.want_logprobs or plan.want_token_ids) and (
            isinstance(self._parser, PlainParser)
        )
        self._open_text = ""
        """Content that waits, where entries are wanted: of a token whose further text may be none."""
        self._num_chars = 0
        self._num_calls = 0
        self._num_unread = 0
        self._token_ids: list[int] = []
        self.num_tokens = 0
        self.num_reasoning_tokens = 0
        """Tokens of which some text is reasoning, or that are markup or held back before such text."""
        self.finish_reason: FinishReason | None = None

    @property
    def is_finished(self) -> bool:
        return self.finish_reason is not None

    @property
    def outcome(self) -> str | None:
        """The finish reason as a word."""
        return None if self.finish_reason is None else self.finish_reason.value

    def feed(self, delta: TokenDelta) -> list[StreamEvent]:
        """Returns the events of new tokens; the last one is `ChoiceFinished` when the choice ended here.

        A delta that finishes as ABORTED or FAILED is the driver's affair; its tokens are read all the same.
        """
        if self.finish_reason is not None:
            return []
        if self._is_plain and delta.finish is None and len(delta.token_ids) == 1:
            self.num_tokens += 1
            text = self._detokenizer.feed(delta.token_ids[0])
            self._num_chars += len(text)
            return [ContentText(text)] if text else []
        return self._feed_all(delta)

    def _feed_all(self, delta: TokenDelta) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        num_hidden = self._num_hidden(delta)
        last = len(delta.token_ids) - 1
        for i, token_id in enumerate(delta.token_ids):
            self.num_tokens += 1
            if self._plan.want_token_ids:
                self._token_ids.append(token_id)
            if i > last - num_hidden:
                continue
            if self._feed_token(token_id, i, delta, events):
                return events
        if delta.finish in _ENDINGS:
            is_dead_end = delta.finish is EngineFinish.GRAMMAR_DEAD_END
            self._finish(_ENDINGS[delta.finish], StopMatch(None, delta.stop_token, is_dead_end), events)
        elif self._token_ids and events:
            self._attach_token_ids(events)
        return events

    def _num_hidden(self, delta: TokenDelta) -> int:
        """An end token says that the text is over; it is not part of it, unless the caller asked for it."""
        if not delta.token_ids or self._plan.include_stop:
            return 0
        token_id = delta.token_ids[-1]
        if delta.finish is EngineFinish.STOP_TOKEN:
            return int(token_id == delta.stop_token)
        return int(delta.finish is EngineFinish.EOS and token_id in self._plan.eos_token_ids)

    def _feed_token(self, token_id: int, i: int, delta: TokenDelta, events: list[StreamEvent]) -> bool:
        """Reads one token; returns whether it ended the choice."""
        num_chars_before = self._num_chars
        text = self._detokenizer.feed(token_id)
        self._num_chars += len(text)
        if self._aligner is not None and delta.logprobs is not None and self._has_text(token_id):
            end = self._num_chars + bool(self._detokenizer.num_pending_bytes)
            self._aligner.feed(delta.logprobs[i], num_chars_before, end)
        self._num_unread += 1
        return bool(text) and self._take_text(text, events)

    def _has_text(self, token_id: int) -> bool:
        plan = self._plan
        is_hidden = plan.skip_special and plan.vocabulary.is_special(token_id) and token_id not in plan.visible_ids
        return not is_hidden

    def _take_text(self, text: str, events: list[StreamEvent]) -> bool:
        parsed = self._parser.feed(text)
        self._count_reasoning(parsed)
        return any(self._take_parsed(event, events) for event in parsed)

    def _count_reasoning(self, parsed: list[ParsedEvent]) -> None:
        """What the first event since is, the tokens are that came before it; the last one may be two things."""
        if not parsed:
            return
        kinds = [isinstance(event, ReasoningText) for event in parsed]
        if kinds[0]:
            self.num_reasoning_tokens += self._num_unread
        elif any(kinds):
            self.num_reasoning_tokens += 1
        self._num_unread = 0

    def _take_parsed(self, event: ParsedEvent, events: list[StreamEvent]) -> bool:
        """Stop strings are matched in content only; whatever else the parser finds passes."""
        if isinstance(event, ToolCallEnded):
            return self._end_call(events)
        if not isinstance(event, ContentText):
            self._emit_open(events)
            events.append(event)
            return False
        if self._aligner is not None:
            self._aligner.note_content(len(event.text), event.num_skipped)
        if self.num_tokens <= self._plan.min_tokens:
            self._emit(self._matcher.pass_through(event.text), events)
            return False
        released = self._matcher.feed(event.text)
        match = self._matcher.match
        self._emit(released, events, is_cut=match is not None)
        if match is None:
            return False
        self._close(FinishReason.STOP, StopMatch(text=match), events)
        return True

    def _end_call(self, events: list[StreamEvent]) -> bool:
        """A call is complete; where only one is allowed, the choice is."""
        self._num_calls += 1
        if self._plan.allows_many_calls:
            return False
        self._emit(self._matcher.finish(), events)
        self._close(FinishReason.STOP, None, events)
        return True

    def _emit(self, text: str, events: list[StreamEvent], *, is_cut: bool = False) -> None:
        if self._aligner is not None and not is_cut and text:
            text = self._open_text + text
            num_open = self._aligner.num_open(len(text), self._num_chars)
            self._open_text = text[len(text) - num_open :]
            text = text[: len(text) - num_open]
        elif is_cut:
            text, self._open_text = self._open_text + text, ""
        if not text:
            return
        entries: tuple[LogprobEntry, ...] = ()
        if self._aligner is not None:
            entries = self._aligner.release_cut(text) if is_cut else self._aligner.release(text)
        events.append(ContentText(text, entries))

    def _emit_open(self, events: list[StreamEvent]) -> None:
        """What follows the text that waits is no content."""
        text, self._open_text = self._open_text, ""
        if text and self._aligner is not None:
            events.append(ContentText(text, self._aligner.release(text, is_end=True)))

    def _finish(self, reason: FinishReason, match: StopMatch, events: list[StreamEvent]) -> None:
        """The engine ended the choice: whatever is held back is text after all, unless it completes a stop."""
        tail = self._detokenizer.finish()
        self._num_chars += len(tail)
        if tail and self._take_text(tail, events):
            return
        parsed = self._parser.finish(is_cut=reason is FinishReason.LENGTH)
        self._count_reasoning(parsed)
        for event in parsed:
            if isinstance(event, ToolCallEnded):
                self._num_calls += 1
                if not self._plan.allows_many_calls:
                    break
            elif self._take_parsed(event, events):
                return
        self._emit(self._matcher.finish(), events)
        self._close(reason, match if match.token_id is not None or match.is_dead_end else None, events)

    def _close(self, reason: FinishReason, match: StopMatch | None, events: list[StreamEvent]) -> None:
        if self._num_calls and reason is FinishReason.STOP and (match is None or match.token_id is not None):
            reason = self._plan.calls_finish
        self._emit_open(events)
        self.finish_reason = reason
        if self._token_ids:
            self._attach_token_ids(events)
        events.append(ChoiceFinished(reason, match))

    def _attach_token_ids(self, events: list[StreamEvent]) -> None:
        """Token ids travel with the next content; those that have no text left travel alone, with the last."""
        token_ids, self._token_ids = tuple(self._token_ids), []
        for i in range(len(events) - 1, -1, -1):
            event = events[i]
            if isinstance(event, ContentText):
                events[i] = ContentText(event.text, event.logprobs, event.token_ids + token_ids)
                return
        events.append(ContentText("", (), token_ids))


_ENDINGS = {
    EngineFinish.EOS: FinishReason.STOP,
    EngineFinish.STOP_TOKEN: FinishReason.STOP,
    EngineFinish.LENGTH: FinishReason.LENGTH,
    EngineFinish.GRAMMAR_COMPLETE: FinishReason.STOP,
    EngineFinish.GRAMMAR_DEAD_END: FinishReason.STOP,
}
