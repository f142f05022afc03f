"""The deprecated `function_call` of a message, whole and streamed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tidegate.conformance.checks.generation import answer_of, stream_chunks
from tidegate.conformance.checks.taken_answer import is_cut
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import at, read_written_json


def function_is_called(exchange: Exchange, *, name: str) -> Iterator[Fault]:
    """The whole answer's message has a `function_call` of the name, with arguments as a string; the reason is
    `function_call` or `stop`.
    """
    choice = answer_of(exchange).choice()
    call = at(exchange.json, "choices", 0, "message", "function_call")
    if not isinstance(call, dict) and is_cut(exchange):
        raise CannotTell("the token budget ended the answer before the call")
    if at(call, "name") != name or not isinstance(at(call, "arguments"), str):
        yield Fault(f"message.function_call is {str(call)[:150]}, expected a call of {name!r}")
    if choice.finish_reason not in ("function_call", "stop", "length"):
        yield Fault(f"finish_reason is {choice.finish_reason!r}, expected 'function_call' or 'stop'")


def streamed_function_is_called(whole: Exchange, streamed: Exchange, *, name: str) -> Iterator[Fault]:
    """The deltas of a stream hold the call that the whole answer's message holds: the name once, in the first fragment,
    and the arguments in parts, as strings; no `tool_calls` beside it; the reason is `function_call` or `stop`. Raises
    CannotTell where the whole answer has no call, which another case tells.
    """
    if at(whole.json, "choices", 0, "message", "function_call", "name") != name:
        raise CannotTell("the whole answer holds no such function_call (see tools.legacy_functions)")
    fragments = [
        (event, at(chunk, "choices", 0, "delta", "function_call"))
        for event, chunk in stream_chunks(streamed)
        if isinstance(at(chunk, "choices", 0, "delta", "function_call"), dict)
    ]
    if not fragments and is_cut(streamed):
        raise CannotTell("the token budget ended the answer before the call")
    if not fragments:
        yield Fault("no delta has a function_call, and the whole answer has one", ask=streamed.ask)
        return
    for fault in (*_misplaced_names(fragments, name), *_odd_arguments(fragments, is_whole=not is_cut(streamed))):
        yield replace(fault, ask=streamed.ask)
    choice = answer_of(streamed).choice()
    if choice.tool_calls:
        yield Fault("tool_calls stand beside the function_call", ask=streamed.ask)
    if choice.finish_reason not in ("function_call", "stop", "length"):
        yield Fault(f"finish_reason is {choice.finish_reason!r}, expected 'function_call' or 'stop'", ask=streamed.ask)


_Fragments = list[tuple[int, dict[str, Any]]]


def _misplaced_names(fragments: _Fragments, name: str) -> Iterator[Fault]:
    for position, (event, fragment) in enumerate(fragments):
        told = fragment.get("name")
        if position == 0 and told != name:
            yield Fault(f"the first fragment has the name {told!r}, expected {name!r}", event)
        elif position and told is not None:
            yield Fault(f"a later fragment has the name {told!r} again: clients join them", event)


def _odd_arguments(fragments: _Fragments, *, is_whole: bool) -> Iterator[Fault]:
    parts = [(event, fragment.get("arguments", "")) for event, fragment in fragments]
    for event, part in parts:
        if not isinstance(part, str):
            yield Fault(f"arguments are {part!r}, expected a text", event)
    joined = "".join(part for _, part in parts if isinstance(part, str))
    if is_whole and not isinstance(read_written_json(joined), dict):
        yield Fault(f"the arguments, joined, are no JSON object: {joined[:150]!r}")
