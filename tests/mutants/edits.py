"""Edits that mutants are made of: of one member, of each choice, of each message, of each delta."""

from collections.abc import Callable, Iterable
from typing import Any

Value = dict[str, Any]
Edit = Callable[[Value], Value]


def without(value: Value, *names: str) -> Value:
    """Returns the object without these members."""
    return {name: part for name, part in value.items() if name not in names}


def set_member(name: str, value: Any) -> Edit:
    """Returns an edit that gives a member this value."""
    return lambda whole: whole | {name: value}


def each_choice(edit: Edit) -> Edit:
    """Returns an edit of a body or chunk: of each of its choices."""
    return lambda body: body | {"choices": [edit(choice) for choice in body.get("choices", [])]}


def each_message(edit: Edit) -> Edit:
    """Returns an edit of a whole chat completion: of each message."""
    return each_choice(lambda choice: choice | {"message": edit(choice["message"])})


def each_delta(edit: Edit) -> Edit:
    """Returns an edit of a chat chunk: of each delta."""
    return each_choice(lambda choice: choice | {"delta": edit(choice["delta"])})


def each_text(edit: Callable[[str], str]) -> Edit:
    """Returns an edit of the text in each choice, whole or chunk, chat or completion."""

    def edited(choice: Value) -> Value:
        if "text" in choice:
            return choice | {"text": edit(choice["text"])}
        name = "delta" if "delta" in choice else "message"
        content = choice[name].get("content")
        return choice | {name: choice[name] | {"content": edit(content)}} if content else choice

    return each_choice(edited)


def chunkwise(edit: Edit) -> Callable[[Value, int], Iterable[Value]]:
    """Returns an edit of streams: of each chunk alone."""
    return lambda chunk, _: [edit(chunk)]
