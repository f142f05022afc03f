"""Calls of tools in an answer, whole or streamed: that they are there, their form, and how the answer ends."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tidegate.conformance.checks.generation import answer_of
from tidegate.conformance.checks.taken_answer import called, calls_of, is_cut
from tidegate.conformance.schema_judge import describe_breach
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import NOT_JSON, at, read_written_json

_MARKUP = re.compile(
    r"</?tool_calls?>|<\|?tool_call|\[TOOL_CALLS\]|<function=|</function>|<\|python_tag\|>|<\|tool.?calls?.?begin\|>"
    r"|<\uff5ctool\u2581calls?\u2581begin\uff5c>|functools\[|<tool_call_begin>|to=functions\."
)
"""What models write around calls, and no answer that a person reads."""


def calls_are_made(exchange: Exchange, *, names: tuple[str, ...], least: int = 1) -> Iterator[Fault]:
    """At least `least` calls, all of tools among `names`. Fewer are no fault where the budget ended the answer."""
    calls = calls_of(answer_of(exchange).choice())
    if len(calls) < least and is_cut(exchange):
        raise CannotTell("the token budget ended the answer before the call")
    if len(calls) < least:
        yield Fault(f"{len(calls)} tool calls, at least {least} expected")
    yield from calls_are_of(exchange, names=names)


def calls_are_of(exchange: Exchange, *, names: tuple[str, ...]) -> Iterator[Fault]:
    """Every call names one of the tools `names`."""
    for call in calls_of(answer_of(exchange).choice()):
        if call.name not in names:
            yield Fault(f"tool_calls[{call.index}] is of {call.name[:80]!r}, which may not be called ({names!r} may)")


def calls_are_at_most(exchange: Exchange, *, most: int) -> Iterator[Fault]:
    """No more than `most` calls."""
    num_calls = len(calls_of(answer_of(exchange).choice()))
    if num_calls > most:
        yield Fault(f"{num_calls} tool calls, at most {most} may come")


def calls_have_shape(exchange: Exchange) -> Iterator[Fault]:
    """Each call has id, type, and the name and arguments of its type, as strings; `content` is null or text. Of a
    whole answer also that `tool_calls` is a list that is not empty.
    """
    for call in called(exchange):
        if not call.id:
            yield Fault(f"tool_calls[{call.index}].id is missing or empty: no result can refer to it")
        if call.kind not in ("function", "custom"):
            yield Fault(f"tool_calls[{call.index}].type is {call.kind!r}, expected 'function' or 'custom'")
    if exchange.is_stream:
        return
    message = at(exchange.json, "choices", 0, "message")
    content = at(message, "content")
    if content is not None and not isinstance(content, str):
        yield Fault(f"message.content is {content!r} beside tool calls, expected null or text")
    for position, raw in enumerate(at(message, "tool_calls")):
        kind, text = ("custom", "input") if at(raw, "type") == "custom" else ("function", "arguments")
        for member in ("name", text):
            if not isinstance(at(raw, kind, member), str):
                yield Fault(f"tool_calls[{position}].{kind}.{member} is {at(raw, kind, member)!r}, expected a string")


def calls_end_with(exchange: Exchange, *, allowed: tuple[str, ...]) -> Iterator[Fault]:
    """An answer with calls that the budget did not cut ends with a reason of `allowed`; one without never says that
    there are some.
    """
    choice = answer_of(exchange).choice()
    reason = choice.finish_reason
    if not choice.tool_calls and reason in ("tool_calls", "function_call"):
        yield Fault(f"finish_reason is {reason!r}, and there are no calls")
    if choice.tool_calls and reason not in (*allowed, "length"):
        yield Fault(f"finish_reason is {reason!r} after a tool call, expected {' or '.join(map(repr, allowed))}")


def nothing_is_called(exchange: Exchange) -> Iterator[Fault]:
    """No call, and no finish reason that tells of one."""
    choice = answer_of(exchange).choice()
    if choice.tool_calls or choice.finish_reason == "tool_calls":
        names = [call.name for call in calls_of(choice)]
        yield Fault(f"calls of {names!r} with finish_reason {choice.finish_reason!r}: no tool may be called")


def answer_is_consistent(exchange: Exchange) -> Iterator[Fault]:
    """Calls and `tool_calls` come together; without calls there is text, unless the budget ended it."""
    yield from calls_end_with(exchange, allowed=("tool_calls",))
    choice = answer_of(exchange).choice()
    if not choice.tool_calls and not (choice.text or choice.reasoning or choice.refusal) and not is_cut(exchange):
        raise CannotTell("the model answered nothing at all")


def arguments_are_json(exchange: Exchange, *, schema: Any = None) -> Iterator[Fault]:
    """The arguments of each call are one JSON object, and keep the schema. A cut answer's last call may be open."""
    calls = called(exchange)
    for call in calls:
        value = read_written_json(call.arguments)
        if value is NOT_JSON and is_cut(exchange) and call is calls[-1]:
            raise CannotTell("the token budget ended the answer inside the call")
        if not isinstance(value, dict):
            yield Fault(f"tool_calls[{call.index}] has arguments that are no JSON object: {call.arguments[:200]!r}")
        elif schema is not None and (breach := describe_breach(schema, value)) is not None:
            yield Fault(
                f"tool_calls[{call.index}] has arguments {call.arguments[:200]} that break the schema: {breach}"
            )


def ids_differ(exchange: Exchange) -> Iterator[Fault]:
    """No two calls of one answer have one id."""
    yield from _say_twins([call.id for call in called(exchange, least=2)])


def ids_differ_over_answers(exchanges: Sequence[Exchange]) -> Iterator[Fault]:
    """No two calls of several answers have one id."""
    yield from _say_twins([call.id for exchange in exchanges for call in called(exchange)])


def _say_twins(ids: list[str | None]) -> Iterator[Fault]:
    for call_id in sorted({str(call_id) for call_id in ids if ids.count(call_id) > 1}):
        yield Fault(f"{ids.count(call_id) or 'several'} calls have the id {call_id!r}: results cannot be told apart")


def ids_have_form(exchange: Exchange, *, pattern: str) -> Iterator[Fault]:
    """Every id matches."""
    for call in called(exchange):
        if re.fullmatch(pattern, call.id or "") is None:
            yield Fault(f"tool_calls[{call.index}].id is {call.id!r}, expected {pattern}")


def content_holds_no_call(exchange: Exchange) -> Iterator[Fault]:
    """What was told as a call is not in the content again, nor is the markup around it."""
    calls = called(exchange)
    text = answer_of(exchange).text
    if (found := _MARKUP.search(text)) is not None:
        yield Fault(f"content holds the markup of calls: {found[0]!r} in {text[:200]!r}")
    for call in calls:
        if len(call.arguments) > len('{"":0}') and call.arguments in text:
            yield Fault(f"content holds the arguments of tool_calls[{call.index}] again: {text[:200]!r}")


def cut_is_honest(exchange: Exchange, *, budget: int) -> Iterator[Fault]:
    """An answer whose last call is not whole, or that spent its budget before any, ends with `length`. One that has
    more tokens than were asked for was not cut at all, which is the matter of the cases of that limit.
    """
    answer = answer_of(exchange)
    choice = answer.choice()
    calls = calls_of(choice)
    spent = at(answer.usage, "completion_tokens")
    is_open = any(read_written_json(call.arguments) is NOT_JSON for call in calls)
    is_spent = isinstance(spent, int) and spent >= budget
    if calls and not is_open:
        raise CannotTell("the call was complete within the budget")
    if not calls and not is_spent:
        raise CannotTell(f"the answer has no call, and ended within the budget ({spent!r} tokens)")
    if isinstance(spent, int) and spent > budget:
        raise CannotTell(f"the answer has {spent} tokens, and {budget} were asked for: nothing was cut")
    if choice.finish_reason != "length":
        inside = f"inside the arguments {calls[-1].arguments[:80]!r}" if calls else f"after {spent} tokens"
        yield Fault(f"finish_reason is {choice.finish_reason!r}, and the answer was cut {inside}")
