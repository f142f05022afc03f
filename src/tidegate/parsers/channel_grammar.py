"""Outputs that consist of messages with headers, as grammar parts: reasoning, preambles, calls, and the answer."""

from tidegate.inference.grammar_parts import (
    AlternativesPart,
    FreePart,
    FreeUntilPart,
    GrammarPart,
    Marker,
    RulePart,
    SeriesPart,
    Trigger,
)
from tidegate.parsers.call_parts import CallParts
from tidegate.parsers.marker_tokens import MarkerTokens
from tidegate.parsers.tool_format import ChannelCalls


def answer_in_channel(style: ChannelCalls, tokens: MarkerTokens, answer: GrammarPart) -> GrammarPart:
    """Returns an output whose answer is `answer`; one stretch of reasoning may come before it."""
    header = tokens.written(f"{style.channel}{style.answer_channel}{style.message}")
    said = SeriesPart((*header, answer))
    end = Trigger((tokens.marker(style.ends[0]),), SeriesPart((*tokens.written(f"{style.start}{style.role}"), said)))
    thought = FreeUntilPart((end,), without=(style.start, style.channel, style.message, *style.ends))
    lead = tokens.written(f"{style.channel}{style.reasoning_channel}{style.message}")
    return AlternativesPart((said, SeriesPart((*lead, thought))))


class ChannelGrammar:
    """The prompt ends with the role of the first message, so the output begins with its channel."""

    def __init__(self, style: ChannelCalls, calls: CallParts, tokens: MarkerTokens, *, allows_many: bool) -> None:
        self._style = style
        self._calls = calls
        self._tokens = tokens
        call_end = tokens.id_of(style.ends[1]) if len(style.ends) > 1 else None
        self._allows_many = allows_many and not (call_end is not None and call_end in tokens.end_ids)
        self._markers = (style.start, style.channel, style.message, *style.ends)

    def root(self, *, is_required: bool) -> GrammarPart:
        """Returns the whole output. Reasoning is part of the format, and may come before a required call."""
        rules = self._calls.rules
        call = self._calls.call(is_first=True)
        again = SeriesPart((*self._next(), RulePart("calls")))
        rules["calls"] = AlternativesPart((call, SeriesPart((call, again)))) if self._allows_many else call
        reasoning = self._message(self._style.reasoning_channel, RulePart("messages"))
        rules["messages"] = RulePart("calls")
        if is_required:
            # One stretch of reasoning: a model that must call does not put it off for ever.
            begun = self._message(self._style.reasoning_channel, RulePart("calls"))
            return AlternativesPart((begun, RulePart("calls")))
        preamble = self._message("commentary", RulePart("messages"))
        answer = SeriesPart((*self._header(self._style.answer_channel), FreePart(self._all_markers())))
        rules["messages"] = AlternativesPart((reasoning, preamble, RulePart("calls"), answer))
        return RulePart("messages")

    def _message(self, channel: str, then: GrammarPart) -> GrammarPart:
        """Returns a message of free text and what follows it."""
        end = Trigger((self._tokens.marker(self._style.ends[0]),), SeriesPart((*self._next(), then)))
        return SeriesPart((*self._header(channel), FreeUntilPart((end,), without=self._markers)))

    def _header(self, channel: str) -> tuple[GrammarPart, ...]:
        return self._tokens.written(f"{self._style.channel}{channel}{self._style.message}")

    def _next(self) -> tuple[GrammarPart, ...]:
        return self._tokens.written(f"{self._style.start}{self._style.role}")

    def _all_markers(self) -> tuple[Marker, ...]:
        return tuple(map(self._tokens.marker, self._markers))
