"""Calls in a stream: how their fragments follow one another, and that they say what the whole answer says."""

from collections.abc import Iterator
from typing import Any

from tidegate.conformance.checks.generation import answer_of
from tidegate.conformance.checks.taken_answer import called, is_cut
from tidegate.conformance.verdict import CannotTell, Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, NOT_JSON, at, read_json

_PARTS = (("function", "name", "arguments"), ("custom", "name", "input"))


def _fragments(exchange: Exchange) -> list[tuple[int, Any]]:
    """Returns (event, entry of `delta.tool_calls`) of the first choice. Raises CannotTell where there is none."""
    found = [
        (event, raw)
        for event, chunk in exchange.numbered_chunks
        for choice in _list(at(chunk, "choices"))
        if at(choice, "index") == 0
        for raw in _list(at(choice, "delta", "tool_calls"))
    ]
    if not found:
        raise CannotTell("the stream has no tool calls")
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def fragments_begin_whole(exchange: Exchange) -> Iterator[Fault]:
    """The first fragment of a call has id, type and name; no later one has an id or a name again: clients join them."""
    begun: set[Any] = set()
    for event, raw in _fragments(exchange):
        index = at(raw, "index")
        names = [at(raw, part, name) for part, name, _ in _PARTS]
        if index not in begun:
            begun.add(index)
            said = {"id": at(raw, "id"), "type": at(raw, "type"), "name": next((n for n in names if n), MISSING)}
            for member, value in said.items():
                if not isinstance(value, str) or not value:
                    yield Fault(f"the first fragment of call {index!r} has no {member}: {str(raw)[:120]}", event)
        elif at(raw, "id") or any(names):
            yield Fault(f"a later fragment of call {index!r} has id or name again: {str(raw)[:120]}", event)


def indices_are_dense(exchange: Exchange) -> Iterator[Fault]:
    """Every fragment has an index; calls are numbered from 0 in the order in which they begin."""
    seen: list[int] = []
    for event, raw in _fragments(exchange):
        index = at(raw, "index")
        if not isinstance(index, int) or isinstance(index, bool):
            yield Fault(f"a fragment has no index: {str(raw)[:120]}", event)
        elif index not in seen:
            if index != len(seen):
                yield Fault(f"call {index} begins where call {len(seen)} is due", event)
            seen.append(index)


def arguments_are_joined_once(exchange: Exchange) -> Iterator[Fault]:
    """The fragments of each call, joined, are one JSON text: none repeats what was sent before."""
    for call in called(exchange):
        if read_json(call.arguments.encode("utf-8", "surrogatepass")) is not NOT_JSON:
            continue
        if is_cut(exchange):
            raise CannotTell("the token budget ended the answer inside the call")
        yield Fault(f"the fragments of call {call.index} join to {call.arguments[:200]!r}, which is no JSON")


def fragments_open_empty(exchange: Exchange) -> Iterator[Fault]:
    """A first fragment has empty arguments, a later one nothing but index and arguments."""
    begun: set[Any] = set()
    for event, raw in _fragments(exchange):
        index = at(raw, "index")
        if index not in begun:
            begun.add(index)
            if not any(at(raw, part, text) == "" for part, _, text in _PARTS):
                yield Fault(f"the first fragment of call {index!r} has no empty arguments: {str(raw)[:120]}", event)
        elif set(raw) - {"index", "function", "custom"} or any(set(at(raw, p) or ()) - {t} for p, _, t in _PARTS):
            yield Fault(f"a later fragment has more than index and arguments: {str(raw)[:120]}", event)


def calls_are_same(whole: Exchange, streamed: Exchange, *, in_characters: bool = False) -> Iterator[Fault]:
    """Both answers have the same calls: names, and arguments as values or, `in_characters`, as text."""
    calls, others = called(whole), called(streamed)
    if is_cut(whole) or is_cut(streamed):
        raise CannotTell("the token budget ended an answer")
    if len(calls) != len(others):
        yield Fault(f"{len(calls)} calls whole, {len(others)} streamed")
        return
    for call, other in zip(calls, others, strict=True):
        if call.name != other.name:
            yield Fault(f"call {call.index} is of {call.name!r} whole, of {other.name!r} streamed")
        pair = (call.arguments, other.arguments)
        values = [text if in_characters else _value(text) for text in pair]
        if values[0] != values[1]:
            yield Fault(f"call {call.index} has arguments {pair[0][:150]!r} whole, {pair[1][:150]!r} streamed")


def _value(text: str) -> Any:
    value = read_json(text.encode("utf-8", "surrogatepass"))
    return text if value is NOT_JSON else value


def content_is_same(whole: Exchange, streamed: Exchange) -> Iterator[Fault]:
    """Both answers have the same text."""
    texts = [answer_of(exchange).text for exchange in (whole, streamed)]
    if texts[0] != texts[1]:
        yield Fault(f"content is {texts[0][:150]!r} whole, {texts[1][:150]!r} streamed")
