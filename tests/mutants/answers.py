"""Edits of answers that mutants are made of: of the first choice's message or deltas, and of calls in either."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.mutant import Answers, EditsChunks, EditsErrors, EditsValue, Heard, Mutant, Said

Edit = Callable[[dict[str, Any]], None]
"""Changes the object that it gets."""


def edits_choice(says: str, edit: Edit) -> EditsValue:
    """A mutant that changes every choice of a whole answer."""

    def apply(value: Any) -> Any:
        for choice in value.get("choices", ()):
            edit(choice)
        return value

    return EditsValue(says, apply)


def edits_message(says: str, edit: Edit) -> EditsValue:
    """A mutant that changes the message of a whole chat."""
    return edits_choice(says, lambda choice: edit(choice["message"]))


def edits_calls(says: str, edit: Callable[[list[Any]], None]) -> EditsValue:
    """A mutant that changes the calls of a whole chat, where there are some."""
    return edits_message(says, lambda message: edit(message["tool_calls"]) if message.get("tool_calls") else None)


def sets_arguments(says: str, arguments: str) -> EditsValue:
    """A mutant whose calls have these arguments."""
    return edits_calls(says, lambda calls: calls[0]["function"].update(arguments=arguments))


def writes_calls_as_text(says: str) -> EditsValue:
    """A mutant that reads no calls: they stay text."""

    def edit(choice: dict[str, Any]) -> None:
        calls = choice["message"].pop("tool_calls", None)
        if calls:
            choice["message"]["content"] = json.dumps(calls[0]["function"])
            choice["finish_reason"] = "stop"

    return edits_choice(says, edit)


def ends_with(says: str, reason: str) -> EditsValue:
    """A mutant whose whole answers end with this reason."""
    return edits_choice(says, lambda choice: choice.update(finish_reason=reason))


def edits_deltas(says: str, edit: Edit) -> EditsChunks:
    """A mutant that changes every delta of a stream."""

    def apply(chunk: Any, position: int) -> Iterable[Any]:
        for choice in chunk.get("choices", ()):
            edit(choice["delta"])
        yield chunk

    return EditsChunks(says, apply)


def edits_fragments(says: str, edit: Edit) -> EditsChunks:
    """A mutant that changes every fragment of a call in a stream."""

    def apply(delta: dict[str, Any]) -> None:
        for fragment in delta.get("tool_calls", ()):
            edit(fragment)

    return edits_deltas(says, apply)


def stream_ends_with(says: str, reason: str) -> EditsChunks:
    """A mutant whose streams end with this reason."""

    def apply(chunk: Any, position: int) -> Iterator[Any]:
        for choice in chunk.get("choices", ()):
            if choice.get("finish_reason") is not None:
                choice["finish_reason"] = reason
        yield chunk

    return EditsChunks(says, apply)


def says_of_errors(says: str, **members: Any) -> EditsErrors:
    """A mutant whose error objects have these members."""
    return EditsErrors(says, lambda value: {"error": value["error"] | members})


NAMES_NOTHING: Mutant = says_of_errors("names no parameter in errors", param=None)
ONE_CODE: Mutant = says_of_errors("has one code for all errors", code="bad_request")


def _refuse_inside(heard: Heard) -> Said | None:
    if not heard.is_stream:
        return None
    error = {"message": "Invalid.", "type": "invalid_request_error", "param": None, "code": None}
    body = b"data: " + json.dumps({"error": error}).encode() + b"\n\ndata: [DONE]\n\n"
    return Said(200, body, [("Content-Type", "text/event-stream")])


REFUSES_INSIDE: Mutant = Answers("begins a stream before it looks at the request", _refuse_inside)
