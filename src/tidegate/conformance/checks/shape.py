"""Members that an answer or a chunk must have, and what each may hold: tables, one for each object of the contract."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tidegate.conformance.checks.generation import stream_chunks, whole_body
from tidegate.conformance.verdict import Fault
from tidegate.conformance.wire.exchange import Exchange
from tidegate.conformance.wire.json_text import MISSING, at

CHAT_FINISHES = ("stop", "length", "tool_calls", "content_filter", "function_call")
COMPLETION_FINISHES = ("stop", "length", "content_filter")


@dataclass(frozen=True, slots=True)
class Member:
    """`what`: what it must be, in words."""

    name: str
    what: str
    holds: Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_any_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_one(*allowed: Any) -> Callable[[Any], bool]:
    return lambda value: any(type(value) is type(one) and value == one for one in allowed)


def _or_null(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or holds(value)


def _body(kind: str) -> tuple[Member, ...]:
    return (
        Member("id", "a text that is not empty", _is_text),
        Member("object", f"{kind!r}", _is_one(kind)),
        Member("created", "a whole number of seconds", _is_count),
        Member("model", "a text that is not empty", _is_text),
        Member("choices", "a list", _is_list),
    )


_INDEX = Member("index", "a whole number from 0", _is_count)
CHAT = _body("chat.completion")
CHAT_CHOICE = (
    _INDEX,
    Member("message", "an object", _is_object),
    Member("finish_reason", f"one of {', '.join(CHAT_FINISHES)}", _is_one(*CHAT_FINISHES)),
)
CHAT_MESSAGE = (
    Member("role", "'assistant'", _is_one("assistant")),
    Member("content", "a text or null", _or_null(_is_any_text)),
)
CHAT_CHOICE_NULLABLE = (Member("logprobs", "an object or null, and present", _or_null(_is_object)),)
CHAT_MESSAGE_NULLABLE = (Member("refusal", "a text or null, and present", _or_null(_is_any_text)),)
CHUNK = _body("chat.completion.chunk")
CHUNK_CHOICE = (_INDEX, Member("delta", "an object", _is_object))
CHUNK_FINISH = (
    Member("finish_reason", f"present: null or one of {', '.join(CHAT_FINISHES)}", _or_null(_is_one(*CHAT_FINISHES))),
)
COMPLETION = _body("text_completion")
COMPLETION_TEXT = (_INDEX, Member("text", "a text", _is_any_text))
COMPLETION_FINISH = (
    Member("finish_reason", f"one of {', '.join(COMPLETION_FINISHES)}", _is_one(*COMPLETION_FINISHES)),
)
COMPLETION_CHUNK_FINISH = (
    Member("finish_reason", f"null or one of {', '.join(COMPLETION_FINISHES)}", _or_null(COMPLETION_FINISH[0].holds)),
)
COMPLETION_NULLABLE = (Member("logprobs", "an object or null, and present", _or_null(_is_object)),)


def _faults(value: Any, members: tuple[Member, ...], where: str, event: int | None = None) -> Iterator[Fault]:
    for member in members:
        found = at(value, member.name)
        if found is MISSING:
            yield Fault(f"{where}{member.name} is missing; it must be {member.what}", event)
        elif not member.holds(found):
            yield Fault(f"{where}{member.name} is {str(found)[:100]!r}; it must be {member.what}", event)


def _choices(body: Any) -> list[Any]:
    choices = at(body, "choices")
    return choices if isinstance(choices, list) else []


def chat_members(exchange: Exchange) -> Iterator[Fault]:
    """A whole chat completion has every member that carries something, with the right type and value."""
    body = whole_body(exchange)
    yield from _faults(body, CHAT, "")
    if _choices(body) == []:
        yield Fault("choices is empty")
    for position, choice in enumerate(_choices(body)):
        yield from _faults(choice, CHAT_CHOICE, f"choices[{position}].")
        if _is_object(at(choice, "message")):
            yield from _faults(choice["message"], CHAT_MESSAGE, f"choices[{position}].message.")


def chat_nullable_members(exchange: Exchange) -> Iterator[Fault]:
    """Members that may be null but not absent are there: logprobs of a choice, refusal of a message."""
    for position, choice in enumerate(_choices(whole_body(exchange))):
        yield from _faults(choice, CHAT_CHOICE_NULLABLE, f"choices[{position}].")
        yield from _faults(at(choice, "message"), CHAT_MESSAGE_NULLABLE, f"choices[{position}].message.")


def completion_members(exchange: Exchange) -> Iterator[Fault]:
    """A whole completion has every member that carries something, with the right type and value."""
    body = whole_body(exchange)
    yield from _faults(body, COMPLETION, "")
    if _choices(body) == []:
        yield Fault("choices is empty")
    for position, choice in enumerate(_choices(body)):
        yield from _faults(choice, COMPLETION_TEXT + COMPLETION_FINISH, f"choices[{position}].")


def completion_nullable_members(exchange: Exchange) -> Iterator[Fault]:
    """Each choice of a completion has logprobs, null where they were not asked for."""
    for position, choice in enumerate(_choices(whole_body(exchange))):
        yield from _faults(choice, COMPLETION_NULLABLE, f"choices[{position}].")


def chat_chunk_members(exchange: Exchange) -> Iterator[Fault]:
    """Each chunk of a chat stream has its members; each of its choices an index and a delta."""
    for event, chunk in stream_chunks(exchange):
        if "error" in chunk:
            continue
        yield from _faults(chunk, CHUNK, "", event)
        for choice in _choices(chunk):
            yield from _faults(choice, CHUNK_CHOICE, "choices[].", event)
            for name in ("content", "refusal"):
                text = at(choice, "delta", name)
                if not (text is MISSING or text is None or isinstance(text, str)):
                    yield Fault(f"delta.{name} is {str(text)[:100]!r}; it must be a text or null", event)


def chat_chunk_finish(exchange: Exchange) -> Iterator[Fault]:
    """Each choice of each chunk has finish_reason: null, or one of the known reasons."""
    for event, chunk in stream_chunks(exchange):
        for choice in _choices(chunk):
            yield from _faults(choice, CHUNK_FINISH, "choices[].", event)


def completion_chunk_members(exchange: Exchange) -> Iterator[Fault]:
    """Each chunk of a completion stream has the members of a completion; its finish_reason may be null."""
    for event, chunk in stream_chunks(exchange):
        if "error" in chunk:
            continue
        yield from _faults(chunk, COMPLETION, "", event)
        for choice in _choices(chunk):
            yield from _faults(choice, COMPLETION_TEXT + COMPLETION_CHUNK_FINISH, "choices[].", event)
