"""Reasoning apart from the answer: in a member of its own, before the content, counted."""

import re
from collections.abc import Iterator

from tidegate.conformance.answer import Choice
from tidegate.conformance.checks.generation import answer_of
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at

_MARKERS = re.compile(
    r"</?think(ing)?>|</?reasoning>|\[/?THINK\]|<\|?/?(begin|end)_of_thought\|?>|<\|channel\|>|<\|START_THINKING\|>"
)
_NAMES = ("reasoning_content", "reasoning")


def _reasoned(exchange: Exchange) -> Choice:
    """Returns the first choice. Raises CannotTell where it has no reasoning."""
    choice = answer_of(exchange).choice()
    if not choice.reasoning and _MARKERS.search(choice.text) is None:
        raise CannotTell("the model did not reason")
    return choice


def reasoning_is_apart(exchange: Exchange) -> Iterator[Fault]:
    """Neither content nor reasoning holds a marker, and the content does not begin with the reasoning again."""
    choice = _reasoned(exchange)
    for where, text in (("content", choice.text), ("reasoning", choice.reasoning)):
        if (found := _MARKERS.search(text)) is not None:
            yield Fault(f"{where} holds the marker {found[0]!r}: {text[:200]!r}")
    if choice.reasoning.strip() and choice.text.lstrip().startswith(choice.reasoning.strip()):
        yield Fault(f"the content tells the reasoning again: {choice.text[:200]!r}")


def reasoning_comes_first(exchange: Exchange) -> Iterator[Fault]:
    """In a stream no reasoning follows text of the content."""
    _reasoned(exchange)
    has_text = False
    for event, chunk in exchange.numbered_chunks:
        delta = at(chunk, "choices", 0, "delta")
        if any(isinstance(at(delta, name), str) and at(delta, name) for name in _NAMES) and has_text:
            yield Fault("reasoning follows text of the content", event)
            return
        has_text = has_text or bool(at(delta, "content"))


def reasoning_is_counted(exchange: Exchange) -> Iterator[Fault]:
    """`reasoning_tokens` is above 0 and not above completion_tokens."""
    _reasoned(exchange)
    usage = answer_of(exchange).usage
    count = at(usage, "completion_tokens_details", "reasoning_tokens")
    spent = at(usage, "completion_tokens")
    if type(count) is not int or count <= 0:
        yield Fault(f"completion_tokens_details.reasoning_tokens is {count!r} of an answer with reasoning")
    elif type(spent) is not int or count > spent:
        yield Fault(f"{count} reasoning tokens of {spent!r} completion tokens")


def reasoning_is_same(whole: Exchange, streamed: Exchange) -> Iterator[Fault]:
    """Both answers have the same reasoning and the same content."""
    for name in ("reasoning", "text"):
        texts = [getattr(_reasoned(exchange), name) for exchange in (whole, streamed)]
        if texts[0] != texts[1]:
            yield Fault(f"{name} is {texts[0][:150]!r} whole, {texts[1][:150]!r} streamed")


def reasons_and_answers(exchange: Exchange, *, reasoning: str, text: str, finish: str) -> Iterator[Fault]:
    """Reasoning, content and finish reason are exactly these, and there is no call."""
    choice = answer_of(exchange).choice()
    if choice.tool_calls:
        yield Fault(f"a call was made: {next(iter(choice.tool_calls.values())).name!r}")
    for what, found, wanted in (
        ("reasoning_content", choice.reasoning, reasoning),
        ("content", choice.text, text),
        ("finish_reason", choice.finish_reason, finish),
    ):
        if found != wanted:
            yield Fault(f"{what} is {str(found)[:200]!r}, expected {wanted!r}")
    if not exchange.is_stream and reasoning and not at(exchange.json, "choices", 0, "message", "reasoning_content"):
        yield Fault("the message has no reasoning_content")
