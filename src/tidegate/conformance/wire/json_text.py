"""JSON as a strict reader takes it (RFC 8259): no NaN, no lone surrogates lost on the way; no name twice in what
servers write, which the texts of models may hold.
"""

import json
from collections.abc import Callable
from typing import Any, Final


class _NotJson:
    """The one value that says: this text is not JSON."""

    def __repr__(self) -> str:
        return "NOT_JSON"


NOT_JSON: Final = _NotJson()


class _Missing:
    """The one value that says: there is nothing at this path."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("a name stands twice")
    return names


def read_json(data: bytes) -> Any:
    """Returns the value, or NOT_JSON."""
    return _read(data, _refuse_twins)


def read_written_json(text: str) -> Any:
    """Returns the value of a text that a model wrote, or NOT_JSON. A name that stands twice is JSON there: RFC 8259
    only advises against it, grammars cannot forbid it, and clients take the last.
    """
    return _read(text.encode("utf-8", "surrogatepass"), dict)


def _read(data: bytes, make: Callable[[list[tuple[str, Any]]], dict[str, Any]]) -> Any:
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=make)
    except (ValueError, RecursionError):
        return NOT_JSON


def at(value: Any, *path: str | int) -> Any:
    """Returns what stands at a path of names and indices; MISSING where there is nothing. A null is a value."""
    for step in path:
        if isinstance(step, int):
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return MISSING
        elif not isinstance(value, dict) or step not in value:
            return MISSING
        value = value[step]
    return value
